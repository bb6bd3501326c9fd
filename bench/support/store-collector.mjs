/** Collects garbage in a book repeatedly, to be killed: node store-collector.mjs STORE_MODULE BOOK [ROUNDS] */
import { writeSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

const [storeModule, root, rounds = "Infinity"] = process.argv.slice(2);
const { collectGarbage } = await import(storeModule);
const clock = { nowMs: () => Date.now() };

for (let round = 0; round < Number(rounds); round++) {
  try {
    const report = await collectGarbage(root, { clock, mergeBelowBytes: 100_000 });
    writeSync(1, `${JSON.stringify(report)}\n`);
  } catch (error) {
    // The book may not exist yet.
    if (error.code !== "no-book") throw error;
  }
  await sleep(5);
}
