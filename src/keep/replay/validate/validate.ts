/** Validates a store: manifest, bytes, references, facts, dense view, splits. Returns all errors, not only the first.
 *  In: the directory of a store. Out: a report. Memory is bounded by windows, the texts of a segment, 80 bytes per
 *  chain and a few hundred per source and task. Does not change anything. */
import { resolve } from "node:path";
import { canonicalize, reasonOf } from "../../../base/index.ts";
import type { ReplayManifest, ReplaySegment } from "../../../contract/index.ts";
import { rootFault, SplitWatch } from "../read/index.ts";
import {
  ChainSet,
  MANIFEST_FILE,
  ROOT_FILE,
  readManifest,
  SCHEMA_ID,
  SCHEMA_VERSION,
  SEGMENTS,
  SegmentReader,
  segmentRoot,
  totalRows,
} from "../tables/index.ts";
import { FileStore, openGroup } from "../zarr/index.ts";
import { checkBytes } from "./bytes.ts";
import { candidates } from "./candidates.ts";
import { chains } from "./chains.ts";
import { denseCells, denseStates } from "./dense.ts";
import { Findings, type ReplayError } from "./findings.ts";
import { lineage, tokens } from "./lineage.ts";
import { checkReferences } from "./references.ts";
import { dictionaries, hashes, sources, targets } from "./rows.ts";
import { pathsOf, type Rule, type RuleContext } from "./rule.ts";

export interface ReplayCheckOptions {
  /** Errors kept in the report; all are counted. 100 000 by default. */
  readonly limit?: number;
  readonly onProgress?: (progress: { segments: number; of: number }) => void;
}

export interface ValidationReport {
  readonly root: string;
  readonly valid: boolean;
  /** Number of all errors, including those beyond the limit. */
  readonly count: number;
  readonly errors: readonly ReplayError[];
  readonly rows: Readonly<Record<string, number>>;
}

const RULES: readonly Rule[] = [
  ...[dictionaries, sources, targets, hashes, lineage, chains, tokens, candidates],
  ...[denseStates, denseCells],
];

export async function validateReplay(
  root: string,
  options: ReplayCheckOptions = {},
): Promise<ValidationReport> {
  const directory = resolve(root);
  const findings = new Findings(options.limit ?? 100_000);
  const manifest = await checkManifest(directory, findings);
  if (manifest !== undefined) {
    const across = new AcrossSegments();
    for (const [i, entry] of manifest.segments.entries()) {
      await validateSegment({ root: directory, manifest, entry, findings, across });
      options.onProgress?.({ segments: i + 1, of: manifest.segments.length });
    }
  }
  const { count, errors } = findings;
  return { root: directory, valid: count === 0, count, errors, rows: manifest?.rows ?? {} };
}

async function checkManifest(root: string, findings: Findings): Promise<ReplayManifest | undefined> {
  const report = (array: string, code: "manifest" | "root", reason: string) =>
    findings.add({ array, row: null, code, reason });
  let manifest: ReplayManifest;
  try {
    manifest = readManifest(root);
  } catch (error) {
    report(MANIFEST_FILE, "manifest", reasonOf(error));
    return undefined;
  }
  const fault = rootFault(root, manifest);
  if (fault !== undefined) report(ROOT_FILE, "root", fault);
  const { tables, segments, layout } = manifest;
  if (tables.id !== SCHEMA_ID || tables.version !== SCHEMA_VERSION)
    report(MANIFEST_FILE, "manifest", `tables are ${tables.id} version ${tables.version}`);
  if (canonicalize(manifest.rows) !== canonicalize(totalRows(segments)))
    report(MANIFEST_FILE, "manifest", "the rows of the store are not the sum of those of its segments");
  const paths = segments.map(({ path }) => path);
  const fits = layout === "plain" ? paths.join() === "" && paths.length === 1 : paths.every(isSegmentPath);
  if (!fits || new Set(paths).size !== paths.length)
    report(MANIFEST_FILE, "manifest", `a ${layout} store cannot have the segments ${paths.join(", ")}`);
  return manifest;
}

function isSegmentPath(path: string): boolean {
  return path.startsWith(`${SEGMENTS}/`);
}

interface SegmentTask {
  root: string;
  manifest: ReplayManifest;
  entry: ReplaySegment;
  findings: Findings;
  across: AcrossSegments;
}

async function validateSegment({ root, manifest, entry, findings, across }: SegmentTask): Promise<void> {
  const store = new FileStore(segmentRoot(root, entry));
  const place = (array: string) => (entry.path === "" ? array : `${entry.path}/${array}`);
  const report: RuleContext["report"] = (array, row, code, reason) =>
    findings.add({ array: place(array), row, code, reason });
  try {
    const intact = await checkBytes(store, entry, report);
    await checkAttributes(store, { manifest, entry, report });
    if (!checkPairs(entry, report)) return;
    const reader = new SegmentReader(store, { metadata: intact, ...entry });
    const context: RuleContext = {
      reader,
      entry,
      manifest,
      report,
      distrust: (array) => intact.delete(array),
    };
    await checkReferences(context, (path) => intact.has(path));
    for (const rule of [...RULES, across])
      if (pathsOf(rule.needs).every((path) => intact.has(path))) await rule.check(context);
  } finally {
    store.close();
  }
}

/** Checks tables that hold one row per row of another table. Rules rely on it. */
function checkPairs({ rows }: ReplaySegment, report: RuleContext["report"]): boolean {
  let paired = true;
  for (const [table, other] of [
    ["lineage", "chains"],
    ["q_h", "steps"],
  ] as const) {
    if (rows[table] === rows[other]) continue;
    paired = false;
    report(table, null, "shape", `${table} has ${rows[table]} rows, ${other} ${rows[other]}`);
  }
  return paired;
}

/** Checks that the attributes of a segment's root match its manifest entry. */
async function checkAttributes(
  store: FileStore,
  {
    manifest,
    entry,
    report,
  }: { manifest: ReplayManifest; entry: ReplaySegment; report: RuleContext["report"] },
): Promise<void> {
  let attributes: Readonly<Record<string, unknown>>;
  try {
    ({ attributes } = await openGroup(store, ""));
  } catch {
    return; // reported with the bytes
  }
  const { rows, hashes, maxCandidates, maxContext, maxFeatures } = entry;
  const expected = {
    schema: SCHEMA_ID,
    version: SCHEMA_VERSION,
    layout: entry.path === "" ? "plain" : "segment",
    returns: manifest.returns,
    widths: { maxCandidates, maxContext, maxFeatures },
    rows,
    hashes,
  };
  for (const [name, value] of Object.entries(expected))
    if (canonicalize(attributes[name] ?? null) !== canonicalize(value))
      report(ROOT_FILE, null, "metadata", `the attribute ${name} is not what the manifest says`);
}

/** Rules between segments: no chain twice, no task in two splits. */
class AcrossSegments implements Rule {
  readonly needs = {
    chains: ["content", "stream"],
    sources: ["task", "task_digest", "environment", "split"],
    dictionary: ["text"],
  } as const;
  readonly #chains = new ChainSet();
  readonly #splits = new SplitWatch();
  #segment = 0;

  async check({ reader, report }: RuleContext): Promise<void> {
    for await (const { from, columns } of reader.blocks("chains", ["content", "stream"])) {
      const { content, stream } = columns;
      for (let i = 0; i < stream.length; i++)
        if (!this.#chains.add(content, stream[i]!, i * 32))
          report("chains/content", from + i, "unique", "this stream of this rollout is in the store already");
    }
    for await (const leak of this.#splits.scan(reader, this.#segment++))
      report(
        "sources/split",
        leak.row,
        "split",
        `the task ${leak.task} is in several splits: ${leak.splits.join(" and ")}`,
      );
  }
}
