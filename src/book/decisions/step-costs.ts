/** Computes the cost of each decision: its call and the following calls before the call of the next decision.
 *  In: a content, one of its step streams. Out: US dollars per step. Calls before the first decision are not counted:
 *  they do not result from a choice. */
import { Call, type ReadBlob, type RolloutContent, type StepStream, spentBy } from "../../contract/index.ts";
import { readRecord } from "../../store/index.ts";

/** Cost of a step, given the cost of its own call; undefined if the cost of one of its calls is unknown. */
type CostOfStep = (step: number, ownUsd: number | undefined) => Promise<number | undefined>;

export function stepCosts(read: ReadBlob, { calls }: RolloutContent, { steps }: StepStream): CostOfStep {
  // A call that was retried elsewhere after a failure has several steps. Its cost counts once, at the last of them.
  const lastOf = new Map(steps.map(({ call = 0 }, i) => [call, i]));
  const deciding = [...lastOf.keys()].sort((a, b) => a - b);
  const endOf = new Map(deciding.map((call, i) => [call, deciding[i + 1] ?? calls.length]));
  return async (step, ownUsd) => {
    const { call = 0 } = steps[step]!;
    if (ownUsd === undefined) return undefined;
    if (lastOf.get(call) !== step) return 0;
    let spent = ownUsd;
    for (const digest of calls.slice(call + 1, endOf.get(call))) {
      // The agent named the model of this call, or another policy decided it.
      const { costUsd, response } = await readRecord(read, Call, digest);
      const later = spentBy({ costUsd, status: response.status });
      if (later === undefined) return undefined;
      spent += later;
    }
    return spent;
  };
}
