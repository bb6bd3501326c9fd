/** Loads decisions from their source: a dataset file, a replay store, or the admitted rollouts of a book.
 *  In: a source, filters. Out: rows, with the facts that their lineage needs. */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { type Digest, RollbookError } from "../../base/index.ts";
import type { ReplayStore } from "../../keep/replay/index.ts";
import {
  type LoggedRow,
  partOf,
  type SplitPart,
  type SplitRule,
  type StoredRow,
  unitOf,
} from "../../learn/index.ts";
import type { TrainingDataset } from "../../policy/index.ts";
import type { OpenBook } from "../open/index.ts";
import { type AdmittedRollouts, nothingAt, requireAdmitted } from "../rollouts/index.ts";
import { type DecisionRequest, decisionRows, everyDecision } from "./decision-rows.ts";
import { FilterTally, requireSelected } from "./filters.ts";
import { readDataset, wrongUsage } from "./read-log.ts";
import { emptyPart } from "./split-rows.ts";

/** Decisions outside a book: a routing dataset, or a replay store, given by its directory or s3://bucket/prefix. */
export type DatasetSource = { readonly data: string } | { readonly replay: string };
export type DecisionSource = OpenBook | DatasetSource;

export function isDataset(source: DecisionSource): source is DatasetSource {
  return "data" in source || "replay" in source;
}

interface LoadedDecisions {
  readonly rows: readonly LoggedRow[];
  /** Admitted rollouts, and the ledger of the others; set only if the source is a book. */
  readonly admitted?: AdmittedRollouts;
  /** Digest of the manifest by which the rows were read; set only if the source is a replay store. */
  readonly manifest?: Digest;
}

/** Selects the rows that are kept in memory. */
type IsKept = (row: LoggedRow) => boolean;

export async function loadDecisions(
  source: DecisionSource,
  request: DecisionRequest,
  isKept: IsKept = () => true,
): Promise<LoadedDecisions> {
  if ("replay" in source) return loadReplay(source.replay, request, isKept);
  if ("data" in source) {
    const families = new Set<string>();
    const rows = await rowsOfFile(source.data, request, (row) => {
      families.add(row.family);
      return isKept(row);
    });
    requireOneFamily(
      source.data,
      families,
      ` To use all of them together, write them as one: \`data import ${source.data} --family NAME --out FILE\`.`,
    );
    return { rows };
  }
  const rows: LoggedRow[] = [];
  const { admitted, rows: each } = await decisionRows(source, request);
  requireSelected([admitted], request);
  for await (const row of each()) if (isKept(row)) rows.push(row);
  return { rows, admitted };
}

async function rowsOfFile(path: string, request: DecisionRequest, isKept: IsKept): Promise<LoggedRow[]> {
  const rows: LoggedRow[] = [];
  const tally = new FilterTally(request);
  for await (const row of readDataset(path)) if (tally.passes(row) && isKept(row)) rows.push(row);
  tally.requireMatch(path);
  return rows;
}

/** Training and evaluation work on the decisions of one policy family. */
function requireOneFamily(where: string, families: ReadonlySet<string>, remedy = ""): void {
  if (families.size < 2) return;
  const names = [...families].sort();
  throw new RollbookError(
    "policy-family-mismatch",
    { root: where, families: names },
    `${where} holds decisions of the families ${names.join(", ")}. Choose one with --family.${remedy}`,
  );
}

/** Rows of one part of a split, which must not be empty. Rows of the other parts are read and discarded. */
export async function loadPart(
  source: DecisionSource,
  request: DecisionRequest,
  { part, rule }: { part: SplitPart; rule: SplitRule },
): Promise<readonly LoggedRow[]> {
  const units = new Set<string>();
  let read = 0;
  const { rows } = await loadDecisions(source, request, (row) => {
    const unit = unitOf(row, rule.unit);
    units.add(unit);
    read++;
    return partOf(unit, rule) === part;
  });
  if (rows.length > 0) return rows;
  throw emptyPart(part, { rows: read, units: units.size, unit: rule.unit });
}

async function loadReplay(root: string, request: DecisionRequest, isKept: IsKept): Promise<LoadedDecisions> {
  return withStore(root, request, async (store) => {
    const rows: LoggedRow[] = [];
    for await (const chain of usableChains(store, request, root))
      for (const { row } of chain) if (isKept(row)) rows.push(row);
    return { rows, manifest: store.manifest.digest };
  });
}

/** Opens a replay store for training or evaluation. */
export async function withStore<T>(
  root: string,
  request: DecisionRequest,
  work: (store: ReplayStore) => Promise<T>,
): Promise<T> {
  if (request.feedback !== undefined)
    throw wrongUsage(
      "--feedback has no effect on a replay store: its rewards are fixed when it is written. Write it with `replay write --feedback`, or read the book",
    );
  if (request.sinceMs !== undefined || request.untilMs !== undefined)
    throw wrongUsage(
      "--since and --until need times, and a replay store keeps none. Read the book, or a dataset exported from it",
    );
  // Loaded on demand: most decisions come from a book or a file.
  const { openReplay } = await import("../../keep/replay/index.ts");
  const { withReplay } = await import("../replay/index.ts");
  return withReplay(root, "read", async (folder) => {
    const store = await openReplay(folder);
    try {
      return await work(store);
    } finally {
      store.close();
    }
  });
}

/** Yields one chain at a time. A store may hold the decisions of several policies, but training and evaluation need
 *  one. A second family is therefore only detected at the end. */
export async function* usableChains(
  store: ReplayStore,
  request: DecisionRequest,
  root: string,
): AsyncGenerator<readonly StoredRow[]> {
  const { replayChains } = await import("./replay-rows.ts");
  const families = new Set<string>();
  const tally = new FilterTally(request);
  for await (const chain of replayChains(store)) {
    const kept = chain.filter(({ row }) => tally.passes(row));
    for (const { row } of kept) families.add(row.family);
    if (kept.length > 0 && isUsable(kept, request)) yield kept;
  }
  tally.requireMatch(root);
  requireOneFamily(root, families);
}

/** A store keeps unlabelled chains and unlogged probabilities. Training and evaluation leave such chains out, as from a
 *  book. */
function isUsable(chain: readonly StoredRow[], request: DecisionRequest): boolean {
  return chain.every(
    ({ row: { reward, propensity } }) =>
      (reward !== null || request.unlabelled === "keep") &&
      (propensity !== null || request.propensity === "any"),
  );
}

/** Reads decisions for inspection: every family of a book if none is named. */
export async function viewDecisions(source: DecisionSource, request: DecisionRequest): Promise<LoggedRow[]> {
  const wide = { ...request, unlabelled: "keep", propensity: "any" } as const;
  if ("data" in source) return rowsOfFile(source.data, wide, () => true);
  if ("replay" in source) return [...(await loadReplay(source.replay, wide, () => true)).rows];
  const { admitted, rows: each } = await everyDecision(source, wide);
  requireSome(admitted, wide);
  const rows: LoggedRow[] = [];
  for await (const row of each()) rows.push(row);
  return rows;
}

/** Refuses a selection, over all families of a book, that leaves no rollout. */
export function requireSome(admitted: readonly AdmittedRollouts[], request: DecisionRequest): void {
  if (admitted.length === 0) throw nothingAt("step");
  requireSelected(admitted, request);
  // The ledger of the first family gives the reasons why no row is admitted.
  if (admitted.every(({ rows }) => rows.length === 0)) requireAdmitted(admitted[0]!);
}

/** Identifies a dataset in a lineage: a file by the SHA-256 of its bytes, as `sha256sum` prints it; a replay store by
 *  its manifest. */
export async function datasetOf(
  source: DatasetSource,
  { manifest }: Pick<LoadedDecisions, "manifest">,
): Promise<TrainingDataset> {
  if ("replay" in source) return { kind: "replay-store", digest: manifest! };
  const hash = createHash("sha256");
  for await (const chunk of createReadStream(source.data)) hash.update(chunk as Uint8Array);
  return { kind: "file", digest: `sha256:${hash.digest("hex")}` as Digest };
}

export function requireDecisions(rows: readonly LoggedRow[]): readonly LoggedRow[] {
  if (rows.length > 0) return rows;
  throw new RollbookError(
    "empty-split",
    { rows: 0 },
    "there are no decisions with an outcome to use. Record the reward of each decision (`rollbook feedback` adds one later), or use another log.",
  );
}
