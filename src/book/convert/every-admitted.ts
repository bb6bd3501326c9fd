/** Everything that a book admits, of every family and level. In: an open book, filters. What batches leave out (failures of
 *  others, rejected, quarantined) is left out here, too. */
import type { DecisionRequest } from "../decisions/index.ts";
import type { OpenBook } from "../open/index.ts";
import { type AdmittedRollouts, admittedRollouts, familiesAt } from "../rollouts/index.ts";

/** At both levels, labelled or not: to hand on, not to learn from. */
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
