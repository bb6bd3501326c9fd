/** Refuses evaluations that a replay store cannot support: it keeps neither prompts nor named fields nor times.
 *  In: the source, the policies and the method. Throws if a result would answer another question than the one asked. */
import { RollbookError } from "../../base/index.ts";
import { baselineOf } from "../../learn/index.ts";
import type { PolicyKind } from "../../policy/index.ts";
import type { DecisionSource } from "../decisions/index.ts";
import type { LoadedPolicy } from "./load-policy.ts";

/** Policies that answer every request in the same way. */
const CONTEXT_FREE: readonly PolicyKind[] = ["ucb1", "thompson-beta"];

export function requireJudgeable(
  source: DecisionSource,
  policies: readonly LoadedPolicy[],
  method?: string,
): void {
  if (!("replay" in source)) return;
  if (method === "confidence-sequence")
    throw new RollbookError(
      "replay-cannot-judge",
      { replay: source.replay, method },
      `a confidence sequence needs decisions in the order they were made, and ${source.replay} keeps no times. Use --data, the book, or another --method.`,
    );
  for (const { folder, checkpoint } of policies) {
    const { model, revision } = checkpoint;
    const fromStore = revision.record.training?.datasets?.some(({ kind }) => kind === "replay-store");
    const readsContext =
      !CONTEXT_FREE.includes(model.kind) || (baselineOf(model)?.source.rules.length ?? 0) > 0;
    if (fromStore || !readsContext) continue;
    throw new RollbookError(
      "replay-cannot-judge",
      { replay: source.replay, folder },
      `${folder} or its table decides by prompts and named fields, which ${source.replay} does not keep. Judge it by --data or the book.`,
    );
  }
}
