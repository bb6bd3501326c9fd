/** Verifies a book in its own process, as `rollbook verify` does, in turns with plain SHA-256 over the same files.
 *  Prints the costs of every round and the peak memory of the process, as one line of JSON.
 *  node verify-race.mjs MODULES BOOK ROUNDS */
import { hash } from "node:crypto";
import { closeSync, openSync, readdirSync, readSync, statSync } from "node:fs";
import { join } from "node:path";

const [modules, directory, rounds] = process.argv.slice(2);
const { openBook } = await import(`${modules}/store/index.js`);
const { verifyBook } = await import(`${modules}/keep/verify/index.js`);

const [plain, ours] = [[], []];
let bytes = hashFiles(); // loads the book into the page cache
let signed = 0;
for (let round = 0; round < Number(rounds); round++) {
  plain.push(
    await costOf(() => {
      bytes = hashFiles();
    }),
  );
  const book = await openBook(directory, { clock: { nowMs: () => Date.now() }, mode: "read" });
  ours.push(
    await costOf(async () => {
      const report = await verifyBook(book);
      if (!report.ok) throw new Error(`the book does not verify: ${JSON.stringify(report.problems[0])}`);
      signed = report.trust.signed;
    }),
  );
  await book.close();
}
const peakBytes = process.resourceUsage().maxRSS * 1024;
console.log(JSON.stringify({ bytes, plain, ours, signed, peakBytes }));

/** Wall time, and the processor time of all threads of this process, which is independent of other programs. */
async function costOf(work) {
  const [start, before] = [performance.now(), process.cpuUsage()];
  await work();
  const { user, system } = process.cpuUsage(before);
  return { wallMs: performance.now() - start, cpuMs: (user + system) / 1000 };
}

function hashFiles() {
  const block = Buffer.alloc(8 << 20);
  let total = 0;
  for (const file of readdirSync(join(directory, "packs"))) {
    const path = join(directory, "packs", file);
    const fd = openSync(path, "r");
    for (let left = statSync(path).size; left > 0; ) {
      const read = readSync(fd, block, 0, block.length, null);
      hash("sha256", block.subarray(0, read), "buffer");
      left -= read;
      total += read;
    }
    closeSync(fd);
  }
  return total;
}
