/** A decision as input of the trainers: the question, the candidates, the choice, its probability, its outcome. */
import { createHash } from "node:crypto";
import { canonicalize, compareUtf8, type Digest, RollbookError } from "../../base/index.ts";
import type { SplitUnit } from "../../contract/index.ts";
import type { DecisionCandidate, DecisionContext } from "../../policy/index.ts";

export interface DecisionRow {
  /** Joins decision and outcome. Unique. */
  readonly id: string;
  readonly context: DecisionContext;
  readonly candidates: readonly DecisionCandidate[];
  readonly chosen: number;
  /** Probability of the choice; null if it was not logged. */
  readonly propensity: number | null;
  /** Null: unlabelled. Never read it as 0. */
  readonly reward: number | null;
}

/** A part of a reward: the measured value and its weight. */
export interface MeasuredTerm {
  readonly value: number;
  readonly weight: number;
}
export type RewardTerms = Readonly<Record<string, MeasuredTerm>>;

export interface LoggedCandidate extends DecisionCandidate {
  /** Probability in the final distribution; null if it was not logged. */
  readonly probability: number | null;
  /** The outcome that this candidate would have had: known in simulators and benchmarks, absent in production. */
  readonly outcome?: { readonly reward: number; readonly terms: RewardTerms };
}

/** A decision with all its logged facts. The book, files of other formats and the judge exchange these rows. */
export interface LoggedRow extends DecisionRow {
  readonly candidates: readonly LoggedCandidate[];
  readonly task: string;
  /** The group of the rollout, else the rollout itself. */
  readonly session: string;
  /** The first decision of the chain. Decisions of one chain are not independent. */
  readonly chain: string;
  /** The policy family that decided. */
  readonly family: string;
  readonly atMs: number;
  readonly source: "real" | "synthetic" | "unknown";
  /** True if the episode ends with this decision. */
  readonly terminal: boolean;
  readonly terms: RewardTerms;
  /** US dollars that the rollout spent from this decision to the next one, as recorded by the gateway. */
  readonly costUsd?: number;
  /** Source of the reward: `recorded`, `feedback:NAME`, or the version that a file states. */
  readonly rewardFrom: string;
}

/** The grouping key of a row. Rows with the same key stay in the same split. */
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

/** True if a decision has a cost without the bill of its call: a term of its reward, or a price of every candidate. */
export function hasOwnCost({ terms, candidates }: CostFacts): boolean {
  return terms.cost !== undefined || candidates.every((one) => one.features.price !== undefined);
}

/** True if the cost of a decision is its spending in US dollars. A log has one kind of cost: a reward term and a bill
 *  in dollars do not add up. So dollars count only if no row has its own cost. */
export function areBilled(rows: readonly CostFacts[]): boolean {
  return !rows.some(hasOwnCost);
}

/** US dollars that a decision spent: the recorded cost of its calls, else the price per call that its choice declares.
 *  Token prices alone are not a bill, because the number of reply tokens is unknown here. */
export function spentOf({
  costUsd,
  candidates,
  chosen,
}: Pick<DecisionRow, "candidates" | "chosen"> & Pick<LoggedRow, "costUsd">): number | undefined {
  return costUsd ?? candidates[chosen]?.features.callPrice;
}

/** The digest of rows, independent of their order and of the file or book they came from. `callCosts`: include the
 *  recorded costs of the calls. Only a trainer that weighs cost reads them, so other digests leave them out. */
export function digestRows(rows: readonly LoggedRow[], { callCosts = false } = {}): Digest {
  const candidatesOf = sharedTexts();
  // Embeddings follow from the prompts, and an endpoint does not reproduce their last bits.
  const lines = rows
    .map(({ context: { embedding: _, ...context }, costUsd, candidates, ...row }) => {
      const rest = canonicalize({
        ...row,
        context,
        ...(callCosts && costUsd !== undefined ? { costUsd } : {}),
      });
      // Keys ascend: `candidates` comes between `atMs`, a number, and `chain`.
      const comma = rest.indexOf(",");
      return flat(`${rest.slice(0, comma)},"candidates":${candidatesOf(candidates)}${rest.slice(comma)}`);
    })
    .sort();
  // Line by line: the joined lines of a large log would exceed the longest string.
  const hash = createHash("sha256").update("rollbook.decision-rows.v1\0");
  for (const [i, line] of lines.entries()) hash.update(i === 0 ? line : `\n${line}`);
  return `sha256:${hash.digest("hex")}` as Digest;
}

/** The canonical text of a list, computed once for rows that share the list. */
function sharedTexts(): (list: LoggedRow["candidates"]) => string {
  const texts = new WeakMap<object, string>();
  return (list) => {
    const text = texts.get(list) ?? flat(canonicalize(list));
    texts.set(list, text);
    return text;
  };
}

/** A string joined from pieces keeps all pieces in memory, several times its length. The copy does not. */
function flat(text: string): string {
  return Buffer.from(text).toString();
}

/** The digest of the rows' embeddings, in the order of the rows; undefined if there are none. */
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

/** Rows with the digest of their source. The training is a function of them. */
export interface DecisionData {
  readonly rows: readonly DecisionRow[];
  readonly digest: Digest;
}

/** All candidates of the rows, sorted. */
export function armsOf(rows: readonly DecisionRow[]): string[] {
  return [...new Set(rows.flatMap((row) => row.candidates.map((one) => one.id)))].sort(compareUtf8);
}

/** The rows with an outcome, sorted by id. Bandits learn in this order, independent of the input order. */
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
