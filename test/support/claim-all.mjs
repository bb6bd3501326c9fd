/** Claims and completes everything in a queue, a few at a time, and prints each item: node claim-all.ts QUEUE WORKER */
import { systemClock } from "../../src/base/clock.ts";
import { digestJson } from "../../src/base/digest.ts";
import { queueDriver } from "../../src/collect/queue/index.ts";

const [place, worker] = process.argv.slice(2) as [string, string];
const queue = await queueDriver(place).open(place, { clock: systemClock, ttlMs: 20_000, create: true });
for (;;) {
  const claims = await queue.claim(worker, 4);
  if (claims.length === 0) break;
  await Promise.all(
    claims.map(async (claim) => {
      const { outcome } = await queue.complete(claim, digestJson("test.result", claim.item));
      if (outcome === "done") console.log(claim.item);
    }),
  );
}
await queue.close();
