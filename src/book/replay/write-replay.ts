/** Writes the admitted rollouts of a book into a replay store: a new one, or segments appended to an existing one.
 *  In: an open book, families, filters. Out: the store on disk, and the excluded rollouts by family. */
import { type Digest, given, RollbookError } from "../../base/index.ts";
import { BookHead, type Level, RolloutContent, type StepStream } from "../../contract/index.ts";
import {
  type AppendOptions,
  appendReplay,
  hasManifest,
  isMeasured,
  type ReturnSemantics,
  type Returns,
  type WriteResult,
  writeReplay as writeStore,
} from "../../keep/replay/index.ts";
import { readLastHead, readRecord } from "../../store/index.ts";
import type { OpenBook } from "../open/index.ts";
import {
  type AdmittedRequest,
  type AdmittedRollouts,
  admittedRollouts,
  familiesAt,
  nothingAt,
  requireFeedback,
  requireRollouts,
} from "../rollouts/index.ts";
import { withReplay } from "./replay-in-bucket.ts";

interface ReplayRequest
  extends Omit<AdmittedRequest, "family" | "level" | "target" | "unlabelled" | "propensity">,
    Pick<AppendOptions, "layout" | "writer" | "durable"> {
  /** Directory, or s3://bucket/prefix. */
  readonly root: string;
  /** Families to write (default: every family of the book). */
  readonly families?: readonly string[] | undefined;
  readonly onProgress?: ((done: number, total: number) => void) | undefined;
}

interface NewReplayRequest extends ReplayRequest {
  /** Return semantics (default: derived from the rollouts). */
  readonly returns?: ReturnSemantics | undefined;
  readonly gamma?: number | undefined;
}

interface ReplayWritten extends WriteResult {
  readonly admitted: readonly AdmittedRollouts[];
}

export async function writeReplay(book: OpenBook, request: NewReplayRequest): Promise<ReplayWritten> {
  const admitted = await admitAll(book, request);
  const semantics = request.returns ?? (await carriedReturns(admitted));
  const returns: Partial<Returns> = { semantics, ...given({ gamma: request.gamma }) };
  const options = await storeOptions(book, request, admitted);
  const write = (root: string) => writeStore({ ...options, root, returns });
  return { ...(await withReplay(request.root, "write", write)), admitted };
}

export async function extendReplay(book: OpenBook, request: ReplayRequest): Promise<ReplayWritten> {
  const admitted = await admitAll(book, request);
  const options = await storeOptions(book, request, admitted);
  const append = (root: string) => appendReplay({ ...options, root });
  return { ...(await withReplay(request.root, "write", append)), admitted };
}

/** Extends the store, or creates it if there is none. */
export async function growReplay(book: OpenBook, request: ReplayRequest): Promise<ReplayWritten> {
  const isThere = await withReplay(request.root, "read", async (root) => hasManifest(root));
  return (isThere ? extendReplay : writeReplay)(book, request);
}

/** A store accepts incomplete rows: unlabelled rollouts have no reward there, and unlogged choices no probability. */
async function admitAll(book: OpenBook, request: ReplayRequest): Promise<AdmittedRollouts[]> {
  const index = await book.index();
  if (request.feedback !== undefined) requireFeedback(index, request.feedback);
  const found: AdmittedRollouts[] = [];
  for (const level of ["step", "token"] as const satisfies readonly Level[])
    for (const family of request.families ?? (await familiesAt(book, index, level)))
      found.push(
        await admittedRollouts(book, {
          ...{ ...request, family, level, freshness: request.freshness ?? "none" },
          ...{ unlabelled: "keep", propensity: "any", logprobs: "any" },
        }),
      );
  // A family without streams at a level is not reported as excluded there.
  const own = found.filter(({ rows, ledger }) => rows.length > 0 || ledger.reasons().some(isOwn));
  if (own.some(({ rows }) => rows.length > 0)) return own;
  if (found.length === 0) {
    requireRollouts(index);
    throw nothingAt("step");
  }
  const left = found.map(({ family, level, ledger }) => `${family} (${level}s): ${ledger.summary()}`);
  throw new RollbookError(
    "no-rollouts",
    { root: request.root, families: found.map(({ family }) => family) },
    `no rollout of the book may enter the store. ${left.join(" ")}`,
  );
}

function isOwn({ reason }: { reason: string }): boolean {
  return reason !== "other-level" && reason !== "other-family";
}

async function storeOptions(
  book: OpenBook,
  { root, layout, writer, durable, feedback, onProgress }: ReplayRequest,
  admitted: readonly AdmittedRollouts[],
): Promise<AppendOptions> {
  const streams = new Set<string>();
  const rollouts = new Map<Digest, string>();
  const rewards: [Digest, AdmittedRollouts["rows"][number]["late"]][] = [];
  for (const { rows } of admitted)
    for (const { content, stream, rolloutId, late } of rows) {
      streams.add(`${content} ${stream}`);
      rollouts.set(content, rolloutId);
      rewards.push([content, late]);
    }
  // Sorted by rollout id, so that a store does not depend on the order of families.
  const ordered = [...rollouts].sort(([, a], [, b]) => (a < b ? -1 : 1)).map(([content]) => content);
  return {
    ...{ root, clock: book.clock, rollouts: ordered },
    read: (digest) => book.store.get(digest),
    admits: (content, stream) => streams.has(`${content} ${stream}`),
    ...(feedback === undefined ? {} : { feedback: { name: feedback, rewards: new Map(rewards) } }),
    ...given({ layout, writer, durable, head: await lastHead(book) }),
    ...(onProgress === undefined
      ? {}
      : { onProgress: (done: { rollouts: number }) => onProgress(done.rollouts, ordered.length) }),
  };
}

/** Last head of the book, stored as its origin: `verify --expect` checks the book against it. */
async function lastHead({ root, store }: OpenBook): Promise<Digest | undefined> {
  const head = root === "" ? undefined : readLastHead(root);
  return head !== undefined && (await store.get(head))?.kind === BookHead.kind ? head : undefined;
}

/** `root-gain` if every chain of decisions measured its errors, else `reward-to-go`. */
async function carriedReturns(admitted: readonly AdmittedRollouts[]): Promise<ReturnSemantics> {
  let chains = 0;
  for await (const isMeasured of measuredChains(admitted)) {
    if (!isMeasured) return "reward-to-go";
    chains++;
  }
  return chains === 0 ? "reward-to-go" : "root-gain";
}

/** For each chain of decisions, true if every step measured its errors. */
async function* measuredChains(admitted: readonly AdmittedRollouts[]): AsyncGenerator<boolean> {
  for (const { rows, level, read } of admitted) {
    if (level !== "step") continue;
    for (const { content, stream } of rows) {
      yield isMeasured((await readRecord(read, RolloutContent, content)).streams[stream] as StepStream);
    }
  }
}
