/** A writer to be killed: fills a book with groups (some blobs, then a root that names them). Prints the digest of each
 *  root when its flush has resolved. Plain JavaScript, because it starts hundreds of times.
 *  node store-writer.mjs STORE_MODULE BOOK SEED */
import { writeSync } from "node:fs";

const [storeModule, root, seed] = process.argv.slice(2);
const { openBook } = await import(storeModule);
const clock = { nowMs: () => Date.now() };
// Tiny limits, so that kills also hit rollover and large files.
const limits = { packBytes: 200_000, largeBytes: 20_000 };
let count = 0;

for (;;) {
  const book = await openBook(root, { clock, ...limits });
  await Promise.all(Array.from({ length: 8 }, () => writeGroups(book, 40)));
  // Closing sometimes lets kills also hit the sealing.
  await book.close();
}

async function writeGroups(book, groups) {
  for (let i = 0; i < groups; i++) {
    const digest = putGroup(book, count++);
    await book.flush();
    writeSync(1, `${digest}\n`);
  }
}

function putGroup(book, number) {
  const children = Array.from({ length: 1 + (number % 3) }, (_, k) => {
    const size = number % 50 === 7 ? 25_000 : (number * 7919 + k * 104729) % 3000;
    return book.put("rollbook.media.v1", new Uint8Array(Buffer.alloc(size, `${seed}.${number}.${k}.`)));
  });
  // One child is shared by many groups of the session and stored once. Some blobs have no reference.
  children.push(book.put("rollbook.media.v1", Buffer.from(`shared by ${seed} ${Math.floor(number / 20)}`)));
  if (number % 4 === 0) book.put("rollbook.media.v1", Buffer.alloc(2000, `${seed}.${number}`));
  return book.put("rollbook.task.v1", Buffer.from(JSON.stringify({ seed, number, children })));
}
