/** Changes run packs as a careless copy or a forger would. Verify must fail and name a link each time.
 *  Two packs: a benchmark suite, and a training loop with its book. A forger lists the changed files again in
 *  pack.json, which then no longer has the signed digest. */

import { createHash } from "node:crypto";
import { cpSync, mkdtempSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { canonicalize } from "../../src/base/canonical-json.ts";
import type { Digest } from "../../src/base/digest.ts";
import { type Rng, rngFrom } from "../../src/base/rng.ts";
import { faultsOf, packPaths, readPack } from "../../src/keep/pack/index.ts";
import { brokenLinks, verifyPack } from "../../src/loop/pack/index.ts";
import type { Campaign } from "../support/programs.ts";
import { benchPack, loopPack } from "../support/small-packs.ts";

const CHANGES = 1000;
const PACK_FILE = "pack.json";

export const campaign: Campaign = {
  summary:
    "1 000 changes of run packs, listed again in pack.json or not; verify names a broken link each time",
  async run({ scale, seed }) {
    const directory = mkdtempSync(join(tmpdir(), "rollbook-packs-"));
    try {
      const rng = rngFrom(seed);
      const packs = [await benchPack(join(directory, "bench")), await loopPack(join(directory, "loop"))];
      const tally = { passed: 0, failed: 0 };
      for (const pack of packs) {
        const { chain } = await verifyPack(pack);
        if (brokenLinks(chain).length > 0)
          throw new Error(`the pack itself is broken: ${brokenLinks(chain)[0]!.broken}`);
      }
      for (let index = 0; index < Math.ceil(CHANGES * scale); index++) {
        const own = rng.split(`change ${index}`);
        // The loop's pack holds a book, so it takes longer to verify.
        const pack = packs[index % 8 === 7 ? 1 : 0]!;
        const copy = join(directory, "copy");
        rmSync(copy, { recursive: true, force: true });
        cpSync(pack, copy, { recursive: true });
        const what = change(copy, own);
        if (await breaks(copy)) tally.passed++;
        else {
          tally.failed++;
          console.error(`  missed: ${what}`);
        }
      }
      return tally;
    } finally {
      rmSync(directory, { recursive: true, force: true });
    }
  },
};

async function breaks(folder: string): Promise<boolean> {
  try {
    return brokenLinks((await verifyPack(folder)).chain).length > 0;
  } catch {
    // pack.json itself is no longer a record: the first link is broken.
    return true;
  }
}

/** Applies one change and returns its description. */
function change(folder: string, rng: Rng): string {
  const paths = packPaths(folder);
  const path = paths[rng.below(paths.length)]!;
  const at = join(folder, path);
  switch (rng.below(8)) {
    case 0:
      rmSync(at);
      return `${path} removed`;
    case 1:
      writeFileSync(join(folder, `extra-${rng.u32()}`), "x");
      return "a file added";
    case 2: {
      const other = paths.find(
        (each) => each !== path && !readFileSync(join(folder, each)).equals(readFileSync(at)),
      )!;
      renameSync(at, `${at}.swap`);
      renameSync(join(folder, other), at);
      renameSync(`${at}.swap`, join(folder, other));
      return `${path} and ${other} swapped`;
    }
    case 3: {
      const bytes = readFileSync(at);
      writeFileSync(at, bytes.subarray(0, rng.below(bytes.length)));
      return `${path} cut short`;
    }
    case 4:
      rmSync(at);
      symlinkSync("/dev/null", at);
      return `${path} made a link`;
    case 5:
      return `${path}: ${flip(at, rng)}`;
    default: {
      const what = flip(at, rng);
      // A new list would undo a change of the list itself.
      return path !== PACK_FILE && relist(folder) ? `${path}: ${what}, listed again` : `${path}: ${what}`;
    }
  }
}

function flip(path: string, rng: Rng): string {
  const bytes = readFileSync(path);
  const byte = rng.below(bytes.length);
  bytes[byte]! ^= 1 << rng.below(8);
  writeFileSync(path, bytes);
  return `a bit of byte ${byte} flipped`;
}

/** Rewrites the record like a forger: it lists the folder's current content, but keeps the old signature. */
function relist(folder: string): boolean {
  try {
    const { record } = readPack(folder);
    if (faultsOf(folder, record).length === 0) return false;
    const files = record.files.map((file) => {
      const bytes = readFileSync(join(folder, file.path));
      return { ...file, bytes: bytes.length, digest: sha256(bytes) };
    });
    writeFileSync(join(folder, PACK_FILE), canonicalize({ ...record, files }));
    return true;
  } catch {
    return false;
  }
}

function sha256(bytes: Uint8Array): Digest {
  return `sha256:${createHash("sha256").update(bytes).digest("hex")}` as Digest;
}
