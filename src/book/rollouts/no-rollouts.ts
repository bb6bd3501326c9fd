/** Makes the errors for a book without the requested data. Each names the available data, or the commands that record
 *  some. */
import { RollbookError } from "../../base/index.ts";
import { type Level, RolloutContent, RolloutEnvelope } from "../../contract/index.ts";
import { RECORD_TOKENS } from "../../keep/batch/index.ts";
import type { BookIndex } from "../open/index.ts";

export const RECORD_ROLLOUTS =
  "Record some: `rollbook gateway` records the calls of any agent, `rollbook launch` runs one on tasks, `rollbook artifact import` reads files";

const RECORD_DECISIONS =
  "Record some: `rollbook gateway` with a `router:` section logs each choice of a model, `rollbook data import LOG` reads a log of another program, `rollbook sim collect` simulates them";

/** Error for a book without a stream of this level. */
export function nothingAt(level: Level): RollbookError {
  return new RollbookError(
    "no-rollouts",
    { level, families: [] },
    `no rollout of the book holds ${level === "step" ? `decisions. ${RECORD_DECISIONS}` : `tokens. ${RECORD_TOKENS}`}.`,
  );
}

/** Refuses to write a file about a book without rollouts. */
export function requireRollouts(index: BookIndex): void {
  if (index.ofKind(RolloutContent.kind).length > 0) return;
  throw new RollbookError("no-rollouts", {}, `the book holds no rollout yet. ${RECORD_ROLLOUTS}.`);
}

/** Refuses an experiment that no rollout names, and lists the known ones. */
export function requireExperiment(index: BookIndex, experiment: string): void {
  const known = new Set(
    index
      .ofKind(RolloutEnvelope.kind)
      .flatMap(({ fields }) => (fields.experiment as string | undefined) ?? []),
  );
  if (known.has(experiment)) return;
  const names = [...known].sort();
  throw new RollbookError(
    "not-found",
    { experiment, known: names },
    `the book has no rollouts of experiment ${experiment}. ${names.length === 0 ? "No rollout of the book names an experiment; `rollbook launch --exp NAME` does" : `It has ${names.join(", ")}`}.`,
  );
}
