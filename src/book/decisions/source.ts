/** Where decisions come from: a dataset file, or the admitted rollouts of a book.
 *  In: a source, filters. Out: rows, with what their lineage says of them. */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import type { Digest } from "../../base/index.ts";
import { RollbookError } from "../../base/index.ts";
import { readDecisions } from "../../convert/routing-jsonl.ts";
import type { LoggedRow } from "../../learn/index.ts";
import type { TrainingDataset } from "../../policy/index.ts";
import type { AdmittedRollouts } from "../admitted-rollouts.ts";
import type { OpenBook } from "../open-book.ts";
import { type DecisionRequest, decisionRows, everyDecision } from "./decision-rows.ts";

export type DecisionSource = OpenBook | { readonly data: string };

export function isFile(source: DecisionSource): source is { readonly data: string } {
  return "data" in source;
}

export interface LoadedDecisions {
  readonly rows: readonly LoggedRow[];
  /** Of a book: what was admitted, and the ledger of the rest. */
  readonly admitted?: AdmittedRollouts;
}

export async function loadDecisions(
  source: DecisionSource,
  request: DecisionRequest,
): Promise<LoadedDecisions> {
  const rows: LoggedRow[] = [];
  if (isFile(source)) {
    for await (const row of readDecisions(source.data)) if (passes(row, request)) rows.push(row);
    return { rows };
  }
  const { admitted, rows: each } = await decisionRows(source, request);
  for await (const row of each()) rows.push(row);
  return { rows, admitted };
}

/** To look at: of a book every family, where none is named. */
export async function viewDecisions(source: DecisionSource, request: DecisionRequest): Promise<LoggedRow[]> {
  const wide = { ...request, unlabelled: "keep", propensity: "any" } as const;
  if (isFile(source)) return [...(await loadDecisions(source, wide)).rows];
  const rows: LoggedRow[] = [];
  for await (const row of (await everyDecision(source, wide)).rows()) rows.push(row);
  return rows;
}

/** A file in a lineage: the SHA-256 of its bytes, as `sha256sum` prints it. */
export async function datasetOf(file: string): Promise<TrainingDataset> {
  const hash = createHash("sha256");
  for await (const chunk of createReadStream(file)) hash.update(chunk as Uint8Array);
  return { kind: "file", digest: `sha256:${hash.digest("hex")}` as Digest };
}

export function requireDecisions(rows: readonly LoggedRow[]): readonly LoggedRow[] {
  if (rows.length > 0) return rows;
  throw new RollbookError(
    "empty-split",
    { rows: 0 },
    "there are no rows. Log decisions, or loosen the filters.",
  );
}

function passes(row: LoggedRow, filters: DecisionRequest): boolean {
  return (
    (filters.session === undefined || row.session === filters.session) &&
    (filters.family === undefined || row.family === filters.family) &&
    (filters.dataSource === undefined || row.source === filters.dataSource) &&
    row.atMs >= (filters.sinceMs ?? Number.NEGATIVE_INFINITY) &&
    row.atMs < (filters.untilMs ?? Number.POSITIVE_INFINITY)
  );
}
