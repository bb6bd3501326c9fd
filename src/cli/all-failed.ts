/** Ends a command whose rollouts have all failed: scripts that check the exit code must not continue.
 *  In: the progress, the failures by reason. Out: an error with the most common reason. Prints nothing. */
import { plural, RollbookError } from "../base/index.ts";
import type { LaunchReport } from "../book/collect/index.ts";
import type { Progress } from "../collect/rollout/index.ts";

interface Failed {
  readonly progress: Pick<Progress, "total" | "failed">;
  readonly failures: LaunchReport["failures"];
  readonly json: true | undefined;
  /** The next step, a sentence. */
  readonly remedy: string;
}

export function requireSuccess({ progress: { total, failed }, failures, json, remedy }: Failed): void {
  const count = Object.values(failed).reduce((sum, each) => sum + each, 0);
  if (count === 0 || count < total) return;
  throw new RollbookError(
    "all-failed",
    { total, failed },
    `${total === 1 ? "the one rollout" : `all ${plural(total, "rollout")}`} failed and ${total === 1 ? "is" : "are"} sealed${causeText(failures, json)}. ${remedy}`,
  );
}

/** Maximum characters of the cause: the table of failures has more of it. */
const MOST_CAUSE = 300;

/** Most common reason of the failures. Text output already has it in the table of failures. */
export function causeText([first]: LaunchReport["failures"], json: true | undefined): string {
  if (first === undefined) return "";
  if (json !== true) return ", as the table of failures says";
  const line = first.message.split("\n")[0]!;
  const told = line.length > MOST_CAUSE ? `${line.slice(0, MOST_CAUSE)}…` : line.replace(/\.$/, "");
  return `. ${plural(first.count, "failure")} of ${first.owner}: ${told}`;
}
