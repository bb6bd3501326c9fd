/** The rule that divides rows into train, calibration and judge, so that any reader can repeat the split. */
import * as z from "zod";
import { probability, text } from "../codec/index.ts";

export const splitPart = z.enum(["train", "calibration", "judge"]);
export type SplitPart = z.output<typeof splitPart>;
/** The grouping key: rows with the same key stay in the same part. */
export const splitUnit = z.enum(["task", "session", "decision"]);
export type SplitUnit = z.output<typeof splitUnit>;

export const splitRule = z.strictObject({
  unit: splitUnit,
  /** Another salt gives another split of the same units. */
  salt: text(256),
  /** Shares of train, calibration and judge; they sum to 1. */
  shares: z.tuple([probability, probability, probability]),
});
