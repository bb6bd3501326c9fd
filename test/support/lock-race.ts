/** A process that takes a lock and removes its file, again and again. In: the lock, and how many times to hold it. Out:
 *  how many times another process held the lock at the same time. */
import { mkdirSync, rmdirSync } from "node:fs";
import { tryLock, unlinkIfThere } from "../../src/store/disk/index.ts";

const [path, times] = process.argv.slice(2) as [string, string];
let shared = 0;
for (let held = 0; held < Number(times); ) {
  const lock = tryLock(path);
  if (lock === undefined) continue;
  held++;
  try {
    mkdirSync(`${path}.held`);
    rmdirSync(`${path}.held`);
  } catch {
    shared++;
  }
  unlinkIfThere(path);
  lock.release();
}
console.log(shared);
