/** Claims and completes everything in a queue, a few items at a time, and prints each item: node claim-all.mjs QUEUE
 *  WORKER. Imports the build, because three processes start much faster from it than from TypeScript. */
import { digestJson, systemClock } from "../../dist/exports/base.js";
import { openNatsQueue, openSqliteQueue } from "../../dist/exports/queue.js";

const [place, worker] = process.argv.slice(2);
const open = place.startsWith("nats://") ? openNatsQueue : openSqliteQueue;
const queue = await open(place, { clock: systemClock, ttlMs: 20_000 });
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
