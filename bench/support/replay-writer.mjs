/** A writer to be killed: writes a replay store and appends to it. Prints the commit of each call.
 *  Plain JavaScript, because it starts hundreds of times.
 *  node replay-writer.mjs REPLAY_MODULE STORE WORLD_FILE */
import { existsSync, readFileSync, writeSync } from "node:fs";
import { join } from "node:path";

const [replayModule, root, worldFile] = process.argv.slice(2);
const { appendReplay, writeReplay } = await import(replayModule);
const world = JSON.parse(readFileSync(worldFile, "utf8"));
const blobs = new Map(
  world.blobs.map(([digest, kind, bytes]) => [
    digest,
    { kind, bytes: new Uint8Array(Buffer.from(bytes, "base64")) },
  ]),
);
const options = { root, read: async (digest) => blobs.get(digest), clock: { nowMs: () => Date.now() } };
// Tiny segments, so that kills also hit a call that makes several segments.
const limits = { candidates: 12 };

writeSync(1, "ready\n");
for (let count = 3; count <= world.rollouts.length; count += 2) {
  const write = existsSync(join(root, "manifest.json")) ? appendReplay : writeReplay;
  const { manifest } = await write({ ...options, rollouts: world.rollouts.slice(0, count), limits });
  writeSync(1, `${manifest.generation} ${manifest.rows.chains}\n`);
}
