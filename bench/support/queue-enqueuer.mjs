/** An enqueuer to be killed: on every start, puts all assignments into a book and their samples into a queue, from the
 *  first on. Prints each queued assignment. Ends when all are queued.
 *  node queue-enqueuer.mjs MODULES DIRECTORY ASSIGNMENTS */
import { writeSync } from "node:fs";

const [modules, directory, assignments] = process.argv.slice(2);
const { openBook } = await import(`${modules}/store/index.js`);
const { Assignment, seal } = await import(`${modules}/contract/index.js`);
const { openSqliteQueue } = await import(`${modules}/collect/queue/index.js`);
const { workItems } = await import(`${modules}/collect/rollout/work/index.js`);

const clock = { nowMs: () => Date.now() };
const book = await openBook(`${directory}/book`, { clock });
const queue = openSqliteQueue(`${directory}/queue.db`, { clock, ttlMs: 400 });
for (let i = 0; i < Number(assignments); i++) {
  const task = { id: `task-${i}` };
  const parts = {
    id: `a-${i}`,
    environment: "env.crash@1",
    task,
    group: `g-${i}`,
    samples: 4,
    seed: BigInt(i),
  };
  const assignment = seal(Assignment, parts);
  book.put(assignment.kind, assignment.bytes);
  await book.flush();
  // Every kill uses up an attempt, and there are many kills.
  await queue.enqueue(workItems(assignment, { maxAttempts: 10_000 }));
  writeSync(1, `${assignment.digest}\n`);
}
await queue.close();
await book.close();
