/** One decision as the trainers see it: the question, the candidates, the choice, its probability, its outcome. */
import { createHash } from "node:crypto";
import { canonicalize, compareUtf8, type Digest, RollbookError } from "../../base/index.ts";
import type { SplitUnit } from "../../contract/index.ts";
import type { DecisionCandidate, DecisionContext } from "../../policy/index.ts";

export interface DecisionRow {
  /** Joins decision and outcome; no two rows share one. */
  readonly id: string;
  readonly context: DecisionContext;
  readonly candidates: readonly DecisionCandidate[];
  readonly chosen: number;
  /** Of the choice; null where it was not logged. */
  readonly propensity: number | null;
  /** Null: unlabelled, which is never 0. */
  readonly reward: number | null;
}

/** A part of a reward: what was measured, and how it counts. */
interface MeasuredTerm {
  readonly value: number;
  readonly weight: number;
}
export type RewardTerms = Readonly<Record<string, MeasuredTerm>>;

export interface LoggedCandidate extends DecisionCandidate {
  /** Of the final distribution; null where it was not logged. */
  readonly probability: number | null;
  /** What it would have brought: known in simulators and benchmarks, absent in production. */
  readonly outcome?: { readonly reward: number; readonly terms: RewardTerms };
}

/** A decision with everything that was logged of it: what the book, files of other formats and the judge exchange. */
export interface LoggedRow extends DecisionRow {
  readonly candidates: readonly LoggedCandidate[];
  readonly task: string;
  /** The group of its rollout, else the rollout itself. */
  readonly session: string;
  /** The first decision of its chain: decisions of one chain are not independent. */
  readonly chain: string;
  /** The policy family that decided. */
  readonly family: string;
  readonly atMs: number;
  readonly source: "real" | "synthetic" | "unknown";
  /** Whether the episode ends with it. */
  readonly terminal: boolean;
  readonly terms: RewardTerms;
  /** US dollars that the rollout spent from this decision up to the next one, as the gateway recorded them. */
  readonly costUsd?: number;
  /** Where the reward comes from: `recorded`, `feedback:NAME`, or the version a file states. */
  readonly rewardFrom: string;
}

/** The grouping key of a row: rows that share one stay in one part of a split. */
export function unitOf(row: Pick<LoggedRow, "task" | "session" | "chain">, unit: SplitUnit): string {
  switch (unit) {
    case "task":
      return row.task;
    case "session":
      return row.session;
    case "decision":
      return row.chain;
    default:
      return unit satisfies never;
  }
}

interface CostFacts {
  readonly terms: RewardTerms;
  readonly candidates: readonly DecisionCandidate[];
}

/** Whether a decision has a cost without the bill of its call: a term of its reward, or a price of every candidate. */
export function hasOwnCost({ terms, candidates }: CostFacts): boolean {
  return terms.cost !== undefined || candidates.every((one) => one.features.price !== undefined);
}

/** Whether the cost of a decision is what it spent in US dollars. One log has one kind of cost: a term of the reward and a bill in
 *  dollars do not add up, so dollars count where no row has a cost of its own. */
export function areBilled(rows: readonly CostFacts[]): boolean {
  return !rows.some(hasOwnCost);
}

/** US dollars that a decision spent: as recorded of its calls, else the price of a call that its choice declares. Token prices
 *  alone are no bill: the tokens of the reply are not known here. */
export function spentOf({
  costUsd,
  candidates,
  chosen,
}: Pick<DecisionRow, "candidates" | "chosen"> & Pick<LoggedRow, "costUsd">): number | undefined {
  return costUsd ?? candidates[chosen]?.features.callPrice;
}

/** The digest of rows, whatever file or book they came from and in whatever order. `callCosts`: it covers the recorded costs of
 *  the calls. Only a trainer that weighs cost reads them, so the digest of other training rows leaves them out. */
export function digestRows(rows: readonly LoggedRow[], { callCosts = false } = {}): Digest {
  const candidatesOf = sharedTexts();
  // Embeddings follow from the prompts, and endpoints do not repeat their last bits.
  const lines = rows
    .map(({ context: { embedding: _, ...context }, costUsd, candidates, ...row }) => {
      const rest = canonicalize({
        ...row,
        context,
        ...(callCosts && costUsd !== undefined ? { costUsd } : {}),
      });
      // Keys ascend: the candidates stand between `atMs`, a number, and `chain`.
      const comma = rest.indexOf(",");
      return flat(`${rest.slice(0, comma)},"candidates":${candidatesOf(candidates)}${rest.slice(comma)}`);
    })
    .sort();
  // Line by line: the lines of a large log joined would not fit into one string.
  const hash = createHash("sha256").update("rollbook.decision-rows.v1\0");
  for (const [i, line] of lines.entries()) hash.update(i === 0 ? line : `\n${line}`);
  return `sha256:${hash.digest("hex")}` as Digest;
}

/** The canonical text of lists, written once for rows that share one. */
function sharedTexts(): (list: LoggedRow["candidates"]) => string {
  const texts = new WeakMap<object, string>();
  return (list) => {
    const text = texts.get(list) ?? flat(canonicalize(list));
    texts.set(list, text);
    return text;
  };
}

/** A text that was joined from pieces keeps them all in memory, several times its length; its copy does not. */
function flat(text: string): string {
  return Buffer.from(text).toString();
}

/** The digest of the rows' embeddings, in the order of the rows; undefined where none has any. */
export function digestEmbeddings(rows: readonly DecisionRow[]): Digest | undefined {
  const hash = createHash("sha256").update("rollbook.embeddings.v1\0");
  let count = 0;
  for (const { context } of rows) {
    if (context.embedding === undefined) continue;
    const { buffer, byteOffset, byteLength } = context.embedding;
    hash.update(new Uint8Array(buffer, byteOffset, byteLength));
    count++;
  }
  return count === 0 ? undefined : (`sha256:${hash.digest("hex")}` as Digest);
}

/** Rows with the digest of where they come from: what a training is a function of. */
export interface DecisionData {
  readonly rows: readonly DecisionRow[];
  readonly digest: Digest;
}

/** The candidates that occur, sorted. */
export function armsOf(rows: readonly DecisionRow[]): string[] {
  return [...new Set(rows.flatMap((row) => row.candidates.map((one) => one.id)))].sort(compareUtf8);
}

/** The rows with an outcome, by id: the order in which bandits learn, whatever order they came in. */
export function labelledRows<Row extends DecisionRow>(rows: readonly Row[]): (Row & { reward: number })[] {
  const seen = new Set<string>();
  for (const [i, row] of rows.entries()) {
    if (seen.has(row.id)) throw badRow(i, row, "its id occurs twice. One decision has one outcome");
    seen.add(row.id);
    if (row.candidates[row.chosen] === undefined)
      throw badRow(i, row, `it chose candidate ${row.chosen} of ${row.candidates.length}. Repair the row`);
    if (row.reward !== null && !Number.isFinite(row.reward))
      throw badRow(i, row, `its reward is ${row.reward}. Repair the row or leave it out`);
  }
  const labelled = rows.filter((row): row is Row & { reward: number } => row.reward !== null);
  if (labelled.length === 0)
    throw new RollbookError(
      "empty-split",
      { rows: rows.length },
      `none of the ${rows.length} rows has a reward: there is nothing to learn from. Record outcomes first.`,
    );
  return [...labelled].sort((a, b) => compareUtf8(a.id, b.id));
}

function badRow(index: number, row: DecisionRow, what: string): RollbookError {
  return new RollbookError(
    "bad-training-data",
    { row: index, id: row.id },
    `row ${index} (${row.id}): ${what}.`,
  );
}
