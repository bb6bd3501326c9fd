/** The cost of a rollout in the gateway beside its calls. In: a gateway. Out: processor time of the serving thread per
 *  call, separately for calling and for opening and closing, by calls per rollout. While rollouts are opened and
 *  closed: the rate of calls, the rate of sealing, and the backlog to seal. */
import { setTimeout as sleep } from "node:timers/promises";
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
export function rolloutOf(calls: number): { open: Buffer; calls: Buffer[]; close: Buffer } {
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
    // Turn by turn over all rollouts, to simulate many agents.
    const turns = Array.from({ length: callsPerRollout }, (_, turn) => all.map((each) => each.calls[turn]!));
    const callUs = await spent(turns.flat());
    const closeUs = await spent(all.map(({ close }) => close));
    return { callUs, sealUs: openUs + closeUs };
  } finally {
    load.close();
  }
}

/** Figures of a gateway that serves calls while it seals rollouts. */
export interface SealingFigures {
  /** Calls per second. */
  readonly rate: number;
  /** Processor time of the serving thread per call. */
  readonly threadUs: number;
  /** Rollouts sealed per second, from the first call until all are sealed. */
  readonly sealedRate: number;
  /** Rollouts that wait to be sealed after the last call, and the time until the backlog is empty. */
  readonly backlog: number;
  readonly emptyMs: number;
}

/** Calls without a rollout: each becomes a separate rollout, sealed after its reply. */
export function singleCalls(contender: Contender, ms: number): Promise<SealingFigures> {
  const request = requestOf({});
  return whileSealing(
    contender,
    () => request,
    (load) => load.closedLoop(ms),
  );
}

/** Every connection opens a rollout, makes its calls, closes it, and starts the next. */
export function wholeRollouts(
  contender: Contender,
  { callsPerRollout, ms }: { callsPerRollout: number; ms: number },
): Promise<SealingFigures> {
  return whileSealing(
    contender,
    () => rolloutOf(0).open,
    async (load) => {
      const perSecond = await load.lists(ms, () => {
        const { open, calls, close } = rolloutOf(callsPerRollout);
        return [open, ...calls, close];
      });
      return (perSecond * callsPerRollout) / (callsPerRollout + 2);
    },
  );
}

async function whileSealing(
  { port, pid }: Contender,
  request: () => Buffer,
  run: (load: Load) => Promise<number>,
): Promise<SealingFigures> {
  const load = new Load(port, request);
  await load.open(CONNECTIONS);
  try {
    const before = await sealingOf(port);
    const beforeUs = mainThreadUs(pid);
    const startMs = performance.now();
    const rate = await run(load);
    const endMs = performance.now();
    const threadUs = (mainThreadUs(pid) - beforeUs) / ((rate * (endMs - startMs)) / 1000);
    let now = await sealingOf(port);
    const { backlog } = now;
    while (now.backlog > 0) {
      await sleep(5);
      now = await sealingOf(port);
    }
    const emptyMs = performance.now() - endMs;
    const sealedRate = ((now.sealed - before.sealed) / (performance.now() - startMs)) * 1000;
    return { rate, threadUs, sealedRate, backlog, emptyMs };
  } finally {
    load.close();
  }
}

/** Rollouts that wait to be sealed. */
export async function backlogOf(port: number): Promise<number> {
  return (await sealingOf(port)).backlog;
}

async function sealingOf(port: number): Promise<{ backlog: number; sealed: number }> {
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  const counted = (name: string) => {
    const line = text.split("\n").find((each) => each.startsWith(`${name} `));
    return line === undefined ? 0 : Number(line.slice(name.length + 1));
  };
  return {
    backlog: counted("rollbook_gateway_seal_backlog"),
    sealed: counted('rollbook_gateway_rollouts_total{event="sealed"}'),
  };
}
