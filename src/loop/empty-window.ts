/** Explains why a window has no rows to learn from: its failures by reason, and the remedy. */
import { isRollbookError, RollbookError } from "../base/index.ts";
import { failureReasons } from "../book/collect/index.ts";
import { type Ending, RolloutContent } from "../contract/index.ts";
import { readRecord } from "../store/index.ts";
import { contentsOf, type RunContext, type WindowAt } from "./stage-parts.ts";

/** Error codes: no row may be used, or no rollout reached a decision. */
const EMPTY: readonly string[] = ["empty-split", "not-found"];

/** Maximum number of reasons in the message. */
const NAMED = 3;

/** Cuts the rows of a window. If there are none because rollouts failed, the error counts the failures by reason. */
export async function cutOrExplain<T>(context: RunContext, at: WindowAt, cut: () => Promise<T>): Promise<T> {
  try {
    return await cut();
  } catch (error) {
    if (!isRollbookError(error) || !EMPTY.includes(error.code)) throw error;
    const endings: Ending[] = [];
    for (const content of await contentsOf(context, at))
      endings.push((await readRecord(context.book.store, RolloutContent, content)).ending);
    const failures = failureReasons(endings);
    if (failures.length === 0) throw error;
    const named = failures
      .slice(0, NAMED)
      .map(({ owner, count, message }) => `${count} (${owner}): ${message.split("\n")[0]}`);
    // The user did not choose the family name of a loop's decisions, so the message does not name it.
    const what = error.code === "not-found" ? "no rollout came as far as a decision." : error.message;
    const more = failures.length > NAMED ? `; ${failures.length - NAMED} more reasons` : "";
    throw new RollbookError(
      "window-empty",
      { ...error.fields, window: at.window.number, failures },
      `window ${at.window.number}: ${what} Failed rollouts: ${named.join("; ")}${more}. The window is sealed, so \`rollbook run resume\` finds the same. Correct the cause, and start the run under another name under run:.`,
      { cause: error },
    );
  }
}
