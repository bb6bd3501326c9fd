/** The refusal codes of the contracts. A refusal is a RollbookError whose code is in this list. */
import { RollbookError } from "../../base/index.ts";

export const REFUSALS = {
  "empty-samples": "an artifact without a single sample",
  "empty-batch": "a batch without a single row",
  "policy-family-mismatch": "streams of another policy family than the batch selects",
  "duplicate-artifact": "one rollout twice in a manifest",
  "duplicate-proof": "one proof digest twice in an envelope",
  "revision-conflict": "one revision id with two policy digests",
  "unknown-revision": "a sample by a revision that has no record",
  "digest-mismatch": "content that does not hash to what it claims",
  "not-canonical": "bytes that are not their own canonical form",
  "non-finite-number": "NaN or infinity",
  "length-mismatch": "ids, logprobs, mask or rewards of different lengths",
  "bad-id": "an id with separators, control characters or nothing in it",
  "unknown-schema": "a record of an unknown kind or version",
  "bad-record": "a record that does not fit its schema",
  "bad-mask": "a mask value other than 0 and 1, or a sample outside every segment",
  "bad-choice": "a step whose choice, candidates and probabilities contradict each other",
  "bad-signature": "a signature that does not fit its subjects",
  "not-bound": "an artifact that does not fit its assignment",
  "bad-logprob": "a log-probability above 0",
  "wrong-logprob-kind": "importance ratios over logprobs of the wrong kind",
  "missing-blob": "a reference to bytes that are missing",
} as const;

export type RefusalCode = keyof typeof REFUSALS;

export function refuse(
  code: RefusalCode,
  fields: Readonly<Record<string, unknown>>,
  message: string,
  options?: ErrorOptions,
): RollbookError<RefusalCode> {
  return new RollbookError(code, fields, message, options);
}

export function isRefusal(error: unknown): error is RollbookError<RefusalCode> {
  return error instanceof RollbookError && Object.hasOwn(REFUSALS, error.code);
}
