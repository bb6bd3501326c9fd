/** How rows are divided into train, calibration and judge, so that anyone can divide them again. */
import * as z from "zod";
import { probability, text } from "../codec/index.ts";

export const splitPart = z.enum(["train", "calibration", "judge"]);
export type SplitPart = z.output<typeof splitPart>;
/** The grouping key: rows that share one stay in one part. */
export const splitUnit = z.enum(["task", "session", "decision"]);
export type SplitUnit = z.output<typeof splitUnit>;

export const splitRule = z.strictObject({
  unit: splitUnit,
  /** Another salt is another split of the same units. */
  salt: text(256),
  /** Of train, calibration and judge, summing to 1. */
  shares: z.tuple([probability, probability, probability]),
});
