/** A worker process: opens queue and book, reports it, waits for a line, then works until no work is left.
 *  node cluster-worker.ts QUEUE BOOK NAME ROLLOUTS MS: MS is the agent's time per rollout. */
import { once } from "node:events";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { systemClock } from "../../src/base/clock.ts";
import { openNatsQueue } from "../../src/collect/queue/index.ts";
import { makeRegistration, makeWorkerServer } from "../../src/collect/rollout/worker/index.ts";
import { newKeyPem, signerFromPem } from "../../src/contract/index.ts";
import { openBook } from "../../src/store/index.ts";
import { makeAssignment, rolloutOf, uploadOf } from "./work.ts";

const [place, path, name, rollouts, ms] = process.argv.slice(2) as [string, string, string, string, string];
/** Concurrent rollouts of one process: 4 × 8 = 32. */
const [LOOPS, LIMIT] = [4, 8];

const queue = await openNatsQueue(place, { clock: systemClock });
const book = await openBook(path, { clock: systemClock });
const assignment = makeAssignment(Number(rollouts));
const signer = signerFromPem(newKeyPem());
const server = makeWorkerServer({
  queue,
  book,
  clock: systemClock,
  trusts: () => true,
  newSession: () => name,
});
const { session } = server.register(makeRegistration(signer, name, systemClock.nowMs()));
const input = createInterface({ input: process.stdin });
console.log("ready");
await once(input, "line");
await Promise.all(Array.from({ length: LOOPS }, work));
await queue.close();
await book.close();

async function work(): Promise<void> {
  for (;;) {
    const claims = await server.claim(session, { limit: LIMIT });
    if (claims.length === 0) return;
    await server.heartbeat(session, claims);
    await Promise.all(
      claims.map(async (claim) => {
        await sleep(Number(ms));
        return server.upload(session, uploadOf(claim, rolloutOf(claim, assignment), signer));
      }),
    );
  }
}
