/** The state of a bandit in the book, brought up to date with the decisions that came since.
 *  In: flags that say which decisions. Out: the state; new increments are sealed in the book. Rollouts whose every
 *  decision is counted are not read again. */
import type { Digest } from "../../base/index.ts";
import { BanditIncrement, openRecord } from "../../contract/index.ts";
import { unitOf } from "../../convert/judged-rows.ts";
import { type RoutingRow, toDecisionRow } from "../../convert/routing-jsonl.ts";
import {
  type BanditState,
  type DecisionRow,
  partOf,
  type SplitRule,
  updateBandit,
} from "../../learn/index.ts";
import type { FeatureSpec } from "../../policy/index.ts";
import type { Book } from "../../store/index.ts";
import type { BookIndex } from "../find/book-index.ts";
import type { Io } from "../../cli/io.ts";
import { withIndexedBook } from "../open-book.ts";
import { filtersOf, type RowFlags, toDataFlags } from "../../cli/options/row-options.ts";
import { eachRowOfBook, rolloutOf } from "../decisions/rows-of-book.ts";

export interface BanditOfBook extends BanditState {
  readonly spec: FeatureSpec | undefined;
  /** The decisions of the train split, where all were asked for; else none. */
  readonly rows: readonly DecisionRow[];
  /** Decisions of the other splits, of those that were read. */
  readonly heldBack: number;
}

export interface BanditOptions {
  readonly rule: SplitRule;
  /** Reads every decision, not only those of rollouts that are not counted yet. */
  readonly readAll: boolean;
  /** For a linear bandit: its features, or how to derive them where no state in the book has any. */
  readonly specOf?: { fixed?: FeatureSpec; derive(rows: AsyncIterable<DecisionRow>): Promise<FeatureSpec> };
}

export async function banditOfBook(io: Io, flags: RowFlags, options: BanditOptions): Promise<BanditOfBook> {
  const { rule, readAll, specOf } = options;
  return withIndexedBook(io, { ...flags, mode: "write" }, async (book, index) => {
    const filters = {
      ...filtersOf(flags),
      split: `train of ${rule.shares.join("/")} by ${rule.unit}, ${rule.salt}`,
    };
    const known = index.ofKind(BanditIncrement.kind).map(({ digest }) => digest);
    const read = { rows: [] as DecisionRow[], heldBack: 0 };
    async function* rows(counted: ReadonlySet<string>) {
      Object.assign(read, { rows: [], heldBack: 0 });
      for await (const row of rowsToRead(book, index, { flags, counted: readAll ? new Set() : counted })) {
        const unit = unitOf(row, rule.unit);
        const decision = { ...toDecisionRow(row), unit };
        if (partOf(unit, rule) !== "train") read.heldBack++;
        else {
          if (readAll) read.rows.push(decision);
          yield decision;
        }
      }
    }
    const spec =
      specOf === undefined
        ? undefined
        : (specOf.fixed ?? (await lastSpec(book, known, filters)) ?? (await specOf.derive(rows(new Set()))));
    const definition = { filters, ...(spec === undefined ? {} : { features: spec }) };
    return { ...(await updateBandit(book, { definition, known, rows })), spec, ...read };
  });
}

/** All rows but those of rollouts whose every decision is in `counted`: these are not read. */
function rowsToRead(
  book: Book,
  index: BookIndex,
  { flags, counted }: { flags: RowFlags; counted: ReadonlySet<string> },
): AsyncGenerator<RoutingRow> {
  const done = new Map<string, number>();
  for (const id of counted) done.set(rolloutOf(id), (done.get(rolloutOf(id)) ?? 0) + 1);
  const skip = (rolloutId: string, samples: number) => done.get(rolloutId) === samples;
  return eachRowOfBook(book, index, { filters: toDataFlags(flags), skip });
}

/** The features of the largest increment under these filters: a state keeps its features until told otherwise. */
async function lastSpec(
  book: Book,
  known: readonly Digest[],
  filters: Readonly<Record<string, string>>,
): Promise<FeatureSpec | undefined> {
  let [most, spec]: [number, FeatureSpec | undefined] = [0, undefined];
  for (const digest of known) {
    const { features, decisions, ...record } = openRecord(
      BanditIncrement,
      (await book.get(digest))!.bytes,
      digest,
    );
    const same =
      JSON.stringify(Object.entries(record.filters).sort()) ===
      JSON.stringify(Object.entries(filters).sort());
    if (!same || features === undefined || decisions.count <= most) continue;
    [most, spec] = [decisions.count, features as unknown as FeatureSpec];
  }
  return spec;
}
