/** Reads the trainer's report of a step.
 *  In: its JSON. Out: the report, and a line for people. */
import { type Digest, isDigest, RollbookError } from "../../base/index.ts";

export interface TrainingReport {
  readonly digest: Digest;
  readonly rows: number;
  readonly steps?: number;
  readonly stopped?: string | null;
  readonly mismatch: { readonly tokens: number; readonly largest: number; readonly mean: number };
  readonly tokens: { readonly all: number; readonly trained: number; readonly share: number };
  readonly groups: { readonly all: number; readonly flat: number };
  readonly stale: number;
  readonly optimizer: "fresh" | "read" | "kept";
  readonly seconds?: { readonly train: number; readonly save: number };
  readonly last?: { readonly loss: number; readonly kl: number; readonly clipped: number };
}

export function checkReport(value: unknown): TrainingReport {
  const report = value as TrainingReport;
  if (isDigest(report.digest)) return report;
  throw new RollbookError(
    "bad-report",
    {},
    "the trainer's report names no digest of weights. Update rollbook-torch.",
  );
}

/** One line with the numbers that reveal silent failures of a step. */
export function describeReport(report: TrainingReport): string {
  const { mismatch, tokens, groups, last, stopped, stale, optimizer, seconds } = report;
  const took = seconds === undefined ? "" : `; the step took ${(seconds.train + seconds.save).toFixed(3)} s`;
  const loss = last === undefined ? "" : `loss ${last.loss.toFixed(4)}, kl ${last.kl.toFixed(4)}, `;
  return (
    `${loss}recorded and recomputed logprobs differ by at most ${mismatch.largest.toExponential(2)}; ${mismatch.tokens} tokens compared, ` +
    `${(100 * tokens.share).toFixed(1)} % of ${tokens.all} tokens trained, ${groups.flat} of ${groups.all} groups without variance, ` +
    `${stale} stale rows, optimizer ${optimizer}${stopped === "kl" ? "; stopped at the KL limit" : ""}${took}`
  );
}
