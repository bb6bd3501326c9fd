/** The hashes of a segment: of its artifacts, of the splits of its tasks, and of the set of each kind of config.
 *  In: rows while they are written or read. Out: digests. Shared by writer, compaction and validator. */
import { createHash } from "node:crypto";
import { compareUtf8, type Digest, digestBytes, digestJson, digestToBytes } from "../../../base/index.ts";

/** Lineage columns whose distinct values are hashed, so that two segments are quickly compared. */
export const HASHED_LINEAGE = [
  ...(["policy", "environment", "environment_digest", "reward", "sampling"] as const),
  ...(["candidate_mixture", "target", "oracle", "rng", "configs"] as const),
] as const;

interface TaskSplit {
  task: string;
  taskDigest: string | undefined;
  environment: string;
  split: string | undefined;
}

export class HashedSets {
  readonly #artifacts = createHash("sha256").update("rollbook.replay.artifacts\0");
  readonly #sets = new Map<string, Set<string>>(HASHED_LINEAGE.map((name) => [name, new Set()]));
  readonly #splits = new Map<string, Buffer>();

  /** Adds a chain, in order: the digest of the rollout and the index of the stream. */
  addChain(content: Uint8Array, stream: number): void {
    const index = Buffer.alloc(4);
    index.writeUInt32LE(stream);
    this.#artifacts.update(content).update(index);
  }

  addLineage(name: (typeof HASHED_LINEAGE)[number], value: string | undefined): void {
    if (value !== undefined) this.#sets.get(name)!.add(value);
  }

  addSplit(source: TaskSplit): void {
    const entry = splitEntry(source);
    this.#splits.set(entry.toString("latin1"), entry);
  }

  digests(): Record<string, Digest> {
    const sets = [...this.#sets].map(([name, values]) => [
      name,
      digestJson("rollbook.replay.set", [...values].sort(compareUtf8)),
    ]);
    const splits = Buffer.concat([...this.#splits.values()].sort(Buffer.compare));
    return {
      ...Object.fromEntries(sets),
      artifacts: `sha256:${this.#artifacts.copy().digest("hex")}` as Digest,
      splits: digestBytes("rollbook.replay.splits", splits),
    };
  }
}

/** Digest of one task and its split. */
function splitEntry({ task, taskDigest, environment, split }: TaskSplit): Buffer {
  const entry = [environment, task, taskDigest ?? null, split ?? null];
  return Buffer.from(digestToBytes(digestJson("rollbook.replay.split", entry)));
}
