/** The worker protocol at full speed, durable, and the time of a claim as the queue grows. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { systemClock } from "../src/base/clock.ts";
import type { Claim, WorkQueue } from "../src/collect/queue/queue.ts";
import { openSqliteQueue } from "../src/collect/queue/sqlite-queue.ts";
import { workItems } from "../src/collect/rollout/work/work-item.ts";
import { makeWorkerServer } from "../src/collect/rollout/worker/worker-protocol.ts";
import { makeRegistration } from "../src/collect/rollout/worker/worker-registration.ts";
import { newKeyPem, signerFromPem } from "../src/contract/index.ts";
import { openBook } from "../src/store/index.ts";
import { median, printTable } from "./support/interleave.ts";
import type { Bench } from "./support/programs.ts";
import { makeAssignment, rolloutOf, uploadOf } from "./support/work.ts";

const BAR_PER_SECOND = 1500;
/** The best published figure of a comparable system: see docs/queue.md. */
const PEER_PER_SECOND = 57;

export const bench: Bench = {
  summary:
    "claim, heartbeat, upload, receipt per second, durable; claim time at 1 000 to 100 000 queued items",
  async run(args) {
    const { values } = parseArgs({
      args,
      options: {
        json: { type: "boolean", default: false },
        only: { type: "string", default: "protocol,claims" },
        rollouts: { type: "string", default: "6000" },
        workers: { type: "string", default: "32" },
        largest: { type: "string", default: "100000" },
      },
    });
    const parts = values.only.split(",");
    if (parts.includes("protocol"))
      printTable(await compareProtocol(Number(values.rollouts), Number(values.workers)), args);
    if (parts.includes("claims")) printTable(await growQueue(Number(values.largest)), args);
  },
};

async function compareProtocol(rollouts: number, workers: number) {
  const rows = [];
  for (const sealing of [false, true]) rows.push(await runProtocol({ rollouts, workers, sealing }));
  return rows;
}

/** `sealing`: workers seal and sign in this process too, so one core does both sides; else their uploads are ready
 *  before the clock starts, and what is timed is the protocol. */
async function runProtocol(options: { rollouts: number; workers: number; sealing: boolean }) {
  const { rollouts, workers, sealing } = options;
  return inTempDirectory(async (directory) => {
    const queue = openSqliteQueue(join(directory, "queue.db"), { clock: systemClock });
    const book = await openBook(join(directory, "book"), { clock: systemClock });
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
    const rate = rollouts / seconds;
    return {
      timed: sealing ? "protocol, and the workers' sealing" : "protocol",
      workers,
      rollouts,
      seconds,
      "rollouts/s": rate,
      "× the bar of 1 500": rate / BAR_PER_SECOND,
      "× the best peer (57)": rate / PEER_PER_SECOND,
    };
  });
}

/** Sizes are timed in turns, so that drift of the machine strikes all alike. */
async function growQueue(largest: number) {
  return inTempDirectory(async (directory) => {
    const sizes = [1_000, 10_000, 100_000].filter((size) => size <= largest);
    const queues: { size: number; queue: WorkQueue; ms: number[]; batchMs: number[] }[] = [];
    for (const size of sizes) {
      const queue = openSqliteQueue(join(directory, `${size}.db`), { clock: systemClock });
      for (let from = 0; from < size; from += 1000)
        await queue.enqueue(Array.from({ length: 1000 }, (_, i) => ({ id: `i${from + i}`, payload: { i } })));
      queues.push({ size, queue, ms: [], batchMs: [] });
    }
    for (let round = 0; round < 120; round++) {
      for (const { queue, ms, batchMs } of queues) {
        await timed(ms, () => queue.claim("w", 1));
        await timed(batchMs, () => queue.claim("w", 4));
      }
    }
    const rows = queues.map(({ size, ms, batchMs }) => ({
      queued: size,
      "claim 1, ms": median(ms.slice(20)),
      "claim 4, ms": median(batchMs.slice(20)),
      "claim 1 / at 1 000": median(ms.slice(20)) / median(queues[0]!.ms.slice(20)),
      "claim 4 / at 1 000": median(batchMs.slice(20)) / median(queues[0]!.batchMs.slice(20)),
    }));
    for (const { queue } of queues) await queue.close();
    return rows;
  });
}

async function timed(into: number[], action: () => Promise<unknown>): Promise<void> {
  const start = performance.now();
  await action();
  into.push(performance.now() - start);
}

async function inTempDirectory<T>(work: (directory: string) => Promise<T>): Promise<T> {
  const directory = mkdtempSync(join(tmpdir(), "rollbook-queue-bench-"));
  try {
    return await work(directory);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}
