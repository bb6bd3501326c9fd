/** The refusal that `action` ends in. Fails the test if `action` succeeds. */
import type { RollbookError } from "../../src/base/errors.ts";
import { isRollbookError } from "../../src/base/errors.ts";

export function refusalOf(action: () => unknown): RollbookError {
  try {
    action();
  } catch (error) {
    if (isRollbookError(error)) return error;
    throw error;
  }
  throw new Error("nothing was refused");
}

export async function rejectionOf(promise: Promise<unknown>): Promise<RollbookError> {
  const outcome = await promise.then(
    () => undefined,
    (error: unknown) => ({ error }),
  );
  return refusalOf(() => {
    if (outcome) throw outcome.error;
  });
}
