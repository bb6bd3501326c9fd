/** Manages the checkpoint folders of the revisions of a run. A missing folder is restored from the book, without the
 *  state of the optimizer, which only the folder holds. */
import { createHash } from "node:crypto";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { type Digest, RollbookError } from "../../base/index.ts";
import { storedWeights } from "../../book/loop/index.ts";
import type { BookOnDisk } from "../../book/open/index.ts";
import { PolicyRevision, type RevisionKey, type Sealed } from "../../contract/index.ts";
import { readSealed } from "../../keep/admit/index.ts";

const WEIGHTS_FILE = "model.safetensors";
const OWN_FILES = new Set([WEIGHTS_FILE, "optimizer.safetensors", "report.json"]);

export function readWeights(folder: string): Uint8Array {
  const path = join(folder, WEIGHTS_FILE);
  try {
    return readFileSync(path);
  } catch (cause) {
    throw new RollbookError(
      "no-checkpoint",
      { path },
      `${path} cannot be read. Name a folder with config.json, ${WEIGHTS_FILE} and a tokenizer under world.model.`,
      { cause },
    );
  }
}

const TOKENIZER_FILES = ["characters.json", "tokenizer.json"];

/** SHA-256 of the file, without a kind: the model server computes the same digest. */
export function tokenizerDigest(folder: string): Digest {
  const name = TOKENIZER_FILES.find((each) => existsSync(join(folder, each)));
  if (name === undefined)
    throw new RollbookError(
      "no-tokenizer",
      { folder },
      `${folder} has neither ${TOKENIZER_FILES.join(" nor ")}. Copy one beside the weights.`,
    );
  const hex = createHash("sha256")
    .update(readFileSync(join(folder, name)))
    .digest("hex");
  return `sha256:${hex}` as Digest;
}

/** Writes the folder of a checkpoint from the book if it is missing, without the state of the optimizer. True if it was
 *  missing. `base` is the folder that the run began with; configuration and tokenizer are copied from it. */
export async function restoreFolder(
  book: BookOnDisk,
  revision: RevisionKey,
  { folder, base }: { folder: string; base: string },
): Promise<boolean> {
  if (existsSync(folder)) return false;
  const weights = await storedWeights(book, revision);
  const temp = `${folder}.tmp-${process.pid}`;
  rmSync(temp, { recursive: true, force: true });
  mkdirSync(temp, { recursive: true });
  for (const name of readdirSync(base))
    if (name.endsWith(".json") && !OWN_FILES.has(name)) copyFileSync(join(base, name), join(temp, name));
  writeFileSync(join(temp, WEIGHTS_FILE), weights);
  renameSync(temp, folder);
  return true;
}

export function readRevisionRecord(
  book: BookOnDisk,
  digest: PolicyRevision["digest"],
): Promise<Sealed<PolicyRevision>> {
  return readSealed((each) => book.store.get(each), PolicyRevision, digest);
}
