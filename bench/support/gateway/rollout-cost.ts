/** What a rollout costs the gateway beside its calls. In: a gateway. Out: processor time of the serving thread per
 *  call, apart for calling and for opening and sealing, by calls per rollout; and the rate of calls when rollouts are
 *  opened and sealed all the while. */
import { type Contender, post, requestOf } from "./contenders.ts";
import { Load } from "./load.ts";
import { mainThreadUs } from "./thread-time.ts";

const CONNECTIONS = 32;

export interface RolloutCost {
  readonly callUs: number;
  readonly sealUs: number;
}

let rollouts = 0;

/** The requests of one whole rollout. */
function rolloutOf(calls: number): { open: Buffer; calls: Buffer[]; close: Buffer } {
  const id = `bench-${rollouts++}`;
  return {
    open: post("/v1/rollouts", JSON.stringify({ id })),
    calls: Array.from({ length: calls }, () => requestOf({ authorization: `Bearer rb-${id}` })),
    close: post(`/v1/rollouts/${id}/close`, "{}"),
  };
}

export async function rolloutCost(
  { port, pid }: Contender,
  { callsPerRollout, calls }: { callsPerRollout: number; calls: number },
): Promise<RolloutCost> {
  const all = Array.from({ length: calls / callsPerRollout }, () => rolloutOf(callsPerRollout));
  const load = new Load(port, () => all[0]!.open);
  await load.open(CONNECTIONS);
  const spent = async (requests: readonly Buffer[]) => {
    const before = mainThreadUs(pid);
    await load.sendAll(requests);
    return (mainThreadUs(pid) - before) / calls;
  };
  try {
    const openUs = await spent(all.map(({ open }) => open));
    // Turn by turn over all rollouts, as if many agents were at work.
    const turns = Array.from({ length: callsPerRollout }, (_, turn) => all.map((each) => each.calls[turn]!));
    const callUs = await spent(turns.flat());
    const closeUs = await spent(all.map(({ close }) => close));
    return { callUs, sealUs: openUs + closeUs };
  } finally {
    load.close();
  }
}

/** Calls per second while every connection opens a rollout, makes its calls, closes it, and begins again. */
export async function steadyRate(
  { port }: Contender,
  { callsPerRollout, ms }: { callsPerRollout: number; ms: number },
): Promise<number> {
  const load = new Load(port, () => rolloutOf(0).open);
  await load.open(CONNECTIONS);
  try {
    const perSecond = await load.lists(ms, () => {
      const { open, calls, close } = rolloutOf(callsPerRollout);
      return [open, ...calls, close];
    });
    return (perSecond * callsPerRollout) / (callsPerRollout + 2);
  } finally {
    load.close();
  }
}
