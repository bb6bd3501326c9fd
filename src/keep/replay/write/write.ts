/** Writes rollouts into a replay store: a new store, or segments appended to one.
 *  In: digests of sealed rollouts and a function that reads blobs. Out: segments on disk, then the manifest that makes
 *  them part of the store. A reader sees the store before or after, never in between; a writer that dies leaves orphans
 *  that readers ignore. Memory: a segment's texts, a few chunks per column, and at most 80 bytes per chain of the
 *  store. */
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { RollbookError } from "../../../base/index.ts";
import type { ReplayManifest } from "../../../contract/index.ts";
import { makeDirectory, syncDirectory, withLock } from "../../../store/index.ts";
import { readCurrentManifest } from "../read/index.ts";
import {
  commitManifest,
  commitRoot,
  DEFAULT_RETURNS,
  hasManifest,
  LOCK_FILE,
  type Returns,
  ROOT_FILE,
  readManifest,
  removeTemporaries,
  sealReplayManifest,
  segmentedRoot,
} from "../tables/index.ts";
import { type AppendOptions, type WriteProgress, WriteSession } from "./write-session.ts";

interface WriteOptions extends AppendOptions {
  readonly returns?: Partial<Returns>;
}

export interface WriteResult extends WriteProgress {
  /** Chains that the store already had. */
  readonly skipped: number;
  /** Written chains whose returns are NaN, because the store has `root-gain` and a step of theirs has no errors. */
  readonly withoutErrors: number;
  readonly manifest: ReplayManifest;
}

/** Creates a new segmented store. */
export async function writeReplay(options: WriteOptions): Promise<WriteResult> {
  const root = resolve(options.root);
  makeRoot(root);
  return withLock(join(root, LOCK_FILE), async () => {
    if (hasManifest(root))
      throw new RollbookError(
        "replay-exists",
        { root },
        `${root} is already a replay store. Add to it with \`rollbook replay append\`, or name another directory.`,
      );
    refuseForeign(root);
    const returns = checkReturns({ ...DEFAULT_RETURNS, ...options.returns });
    const empty = sealReplayManifest({
      layout: "segmented",
      generation: 0,
      returns,
      reasons: [],
      segments: [],
    });
    const result = await extend({ ...options, root }, empty);
    if (result.manifest.generation > 0) return result;
    throw new RollbookError(
      "no-rollouts",
      { root, rollouts: result.rollouts },
      `none of ${result.rollouts} rollouts has a stream to write. Name rollouts, or check the families.`,
    );
  });
}

/** Adds segments to a store. If there is nothing new, the store is unchanged. */
export async function appendReplay(options: AppendOptions): Promise<WriteResult> {
  const root = resolve(options.root);
  readManifest(root);
  return withLock(join(root, LOCK_FILE), async () => {
    const manifest = readCurrentManifest(root);
    if (manifest.layout === "segmented") return extend({ ...options, root }, manifest);
    throw new RollbookError(
      "replay-is-plain",
      { root },
      `${root} is compacted: one plain Zarr tree takes no segments. Append to the segmented store it was made from, and compact again.`,
    );
  });
}

async function extend(options: AppendOptions, manifest: ReplayManifest): Promise<WriteResult> {
  const { root } = options;
  removeTemporaries(root);
  // Update the root if a writer died right after its commit.
  if (!isRoot(root, manifest.generation)) commitRoot(root, manifest.generation);
  const session = new WriteSession(options, manifest);
  try {
    await session.learn();
    await session.writeAll();
  } catch (error) {
    session.abandon();
    throw error;
  }
  const { segments, reasons, ...counts } = session;
  if (segments.length === 0) return { ...counts, manifest };
  const next = sealReplayManifest({
    layout: "segmented",
    generation: manifest.generation + 1,
    returns: manifest.returns,
    reasons: reasons.names as ReplayManifest["reasons"],
    segments: [...manifest.segments, ...segments],
  });
  commitManifest(root, next);
  commitRoot(root, next.generation);
  return { ...counts, manifest: next };
}

function makeRoot(root: string): void {
  if (existsSync(root)) {
    if (statSync(root).isDirectory()) return;
    throw new RollbookError(
      "not-a-folder",
      { root },
      `${root} is a file, and a replay store is a directory. Name a new directory.`,
    );
  }
  makeDirectory(root);
  syncDirectory(dirname(root));
}

/** Refuses a directory with files that a writer could not have left before its first commit. */
function refuseForeign(root: string): void {
  const ours = /^(?:segments|writer\.lock.*|zarr\.json(?:\.tmp)?|manifest\.json\.tmp)$/;
  const foreign = readdirSync(root).filter((name) => !ours.test(name));
  if (foreign.length === 0) return;
  throw new RollbookError(
    "not-empty",
    { root, foreign },
    `${root} holds other things (${foreign.slice(0, 3).join(", ")}). Name a new or empty directory.`,
  );
}

function isRoot(root: string, generation: number): boolean {
  const path = join(root, ROOT_FILE);
  return existsSync(path) && Buffer.compare(readFileSync(path), segmentedRoot(generation)) === 0;
}

function checkReturns(returns: Returns): Returns {
  const { gamma, epsilon } = returns;
  if (gamma >= 0 && gamma <= 1 && epsilon > 0 && Number.isFinite(epsilon)) return returns;
  throw new RollbookError(
    "bad-returns",
    { gamma, epsilon },
    `gamma ${gamma} must lie in 0 … 1 and epsilon ${epsilon} above 0.`,
  );
}
