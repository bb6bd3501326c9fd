/** The worker protocol at full speed on any queue, and the time of a claim as the queue grows.
 *  In: a driver that opens queues. Out: rollouts per second; milliseconds per claim by queue size. */
import { join } from "node:path";
import { systemClock } from "../../src/base/clock.ts";
import type { Claim, WorkQueue } from "../../src/collect/queue/queue.ts";
import { workItems } from "../../src/collect/rollout/work/work-item.ts";
import { makeWorkerServer } from "../../src/collect/rollout/worker/worker-protocol.ts";
import { makeRegistration } from "../../src/collect/rollout/worker/worker-registration.ts";
import { newKeyPem, signerFromPem } from "../../src/contract/index.ts";
import { openBook } from "../../src/store/index.ts";
import { inTempFolder } from "./temp-folder.ts";
import { makeAssignment, rolloutOf, uploadOf } from "./work.ts";

/** Opens an empty queue; `folder` is for drivers that keep files. */
export type OpenBenchQueue = (folder: string) => Promise<WorkQueue>;

export interface ProtocolOptions {
  readonly open: OpenBenchQueue;
  readonly rollouts: number;
  readonly workers: number;
  /** True: workers seal and sign in this process too, so one core does both sides. False: their uploads are ready
   *  before the clock starts, and only the protocol is timed. */
  readonly sealing: boolean;
}

/** Seconds for all rollouts: claim, heartbeat, upload, receipt. */
export async function timeProtocol({ open, rollouts, workers, sealing }: ProtocolOptions): Promise<number> {
  return inTempFolder("rollbook-queue-bench-", async (folder) => {
    const queue = await open(folder);
    const book = await openBook(join(folder, "book"), { clock: systemClock });
    let sessions = 0;
    const newSession = () => `session-${sessions++}`;
    const server = makeWorkerServer({ queue, book, clock: systemClock, trusts: () => true, newSession });
    const assignment = makeAssignment(rollouts);
    book.put(assignment.kind, assignment.bytes);
    const items = workItems(assignment);
    await queue.enqueue(items);
    const signer = signerFromPem(newKeyPem());
    const { session } = server.register(makeRegistration(signer, "w", systemClock.nowMs()));
    const make = (claim: Claim) => uploadOf(claim, rolloutOf(claim, assignment), signer);
    const first = { token: 1, attempt: 1, worker: "w", expiresAtMs: 0 };
    const ready = new Map(
      sealing ? [] : items.map((item) => [item.id, make({ item: item.id, payload: item.payload, ...first })]),
    );
    let stored = 0;
    const work = async () => {
      for (;;) {
        const claims = await server.claim(session, { limit: 8 });
        if (claims.length === 0) return;
        await server.heartbeat(session, claims);
        const receipts = await Promise.all(
          claims.map((claim) => server.upload(session, ready.get(claim.item) ?? make(claim))),
        );
        stored += receipts.filter(({ record }) => record.outcome === "stored").length;
      }
    };
    const start = performance.now();
    await Promise.all(Array.from({ length: workers }, work));
    const seconds = (performance.now() - start) / 1000;
    const { done } = await queue.counts();
    if (stored !== rollouts || done !== rollouts)
      throw new Error(`${stored} stored, ${done} done of ${rollouts}`);
    await queue.close();
    await book.close();
    return seconds;
  });
}

export interface ClaimTimes {
  readonly size: number;
  /** Milliseconds per claim of one item, and of four items. */
  readonly ms: number[];
  readonly batchMs: number[];
}

const CLAIM_ROUNDS = 120;
const WARM_UP = 20;

/** Sizes are timed in turns, so that drift of the machine affects all equally. */
export async function timeClaims(open: OpenBenchQueue, sizes: readonly number[]): Promise<ClaimTimes[]> {
  return inTempFolder("rollbook-queue-bench-", async (folder) => {
    const queues: (ClaimTimes & { queue: WorkQueue })[] = [];
    for (const size of sizes) {
      const queue = await open(join(folder, String(size)));
      for (let from = 0; from < size; from += 1000)
        await queue.enqueue(Array.from({ length: 1000 }, (_, i) => ({ id: `i${from + i}`, payload: { i } })));
      queues.push({ size, queue, ms: [], batchMs: [] });
    }
    for (let round = 0; round < CLAIM_ROUNDS; round++)
      for (const { queue, ms, batchMs } of queues) {
        const [one, four] = [await timed(() => queue.claim("w", 1)), await timed(() => queue.claim("w", 4))];
        if (round < WARM_UP) continue;
        ms.push(one);
        batchMs.push(four);
      }
    for (const { queue } of queues) await queue.close();
    return queues.map(({ size, ms, batchMs }) => ({ size, ms, batchMs }));
  });
}

async function timed(action: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await action();
  return performance.now() - start;
}
