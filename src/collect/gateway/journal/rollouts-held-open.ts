/** Lists the rollouts that a journal holds open. In: its directory. Out: ids, in the order of opening. Reads events only,
 *  and changes nothing. A call without a rollout is not listed: the next start of the gateway seals it. */
import type { Id } from "../../../base/index.ts";
import { openRecord, RolloutEvent, SINGLE_TASK } from "../../../contract/index.ts";
import { AppendLog } from "../../../store/index.ts";
import { isCall } from "./journal-call.ts";

export function rolloutsHeldOpen(directory: string): Id[] {
  const open = new Set<Id>();
  AppendLog.open(directory, ({ payload }) => {
    if (isCall(payload)) return;
    const { rollout, event } = openRecord(RolloutEvent, payload);
    if (event.kind === "opened" && event.task.id !== SINGLE_TASK) open.add(rollout);
    if (event.kind === "closed") open.delete(rollout);
  });
  return [...open];
}
