/** Claims and completes whatever the queue holds, a few at a time, and prints the items. Run as a process. */
import { systemClock } from "../../src/base/clock.ts";
import { digestJson } from "../../src/base/digest.ts";
import { openSqliteQueue } from "../../src/collect/queue/sqlite-queue.ts";

const [path, worker] = process.argv.slice(2) as [string, string];
const queue = openSqliteQueue(path, { clock: systemClock });
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
