/** Reads all rollouts that a book admits, of every family and level.
 *  In: an open book, filters. Out: admitted rollouts. Leaves out what batches leave out: failures not caused by the
 *  policy, and rejected and quarantined rollouts. */
import type { DecisionRequest } from "../decisions/index.ts";
import type { OpenBook } from "../open/index.ts";
import { type AdmittedRollouts, admittedRollouts, familiesAt } from "../rollouts/index.ts";

/** Reads both levels and also unlabelled rollouts: the result is for export, not for training. */
export async function everyAdmitted(book: OpenBook, request: DecisionRequest): Promise<AdmittedRollouts[]> {
  const index = await book.index();
  const admitted: AdmittedRollouts[] = [];
  for (const level of ["step", "token"] as const) {
    const families = await familiesAt(book, index, level);
    for (const family of families.filter((each) => request.family === undefined || each === request.family))
      admitted.push(
        await admittedRollouts(book, {
          ...{ ...request, family, level, freshness: "none" },
          ...{ unlabelled: "keep", propensity: "any", logprobs: "any" },
        }),
      );
  }
  return admitted;
}
