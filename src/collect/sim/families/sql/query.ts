/** Queries over two tables, parents and their children: evaluated here over rows, rendered as SQL, and made wrong.
 *  Expected answers are never computed by SQL. The proof shows that SQL and the evaluation here agree. */
import type { Json } from "../../../../base/index.ts";

export interface Domain {
  readonly parents: string;
  readonly parent: string;
  /** The text column of a parent besides its name. */
  readonly label: string;
  readonly labels: readonly string[];
  readonly names: readonly string[];
  readonly children: string;
  readonly child: string;
  readonly kind: string;
  readonly kinds: readonly string[];
  /** An integer, never NULL. */
  readonly amount: string;
  /** An integer or NULL. */
  readonly extra: string;
}

/** id, name, label */
export type Parent = readonly [number, string, string];
/** id, parent, kind, amount, extra */
export type Child = readonly [number, number, string, number, number | null];

const QUERY_KINDS = ["list", "join", "group", "outer", "having", "top", "missing", "best", "above"] as const;
export type QueryKind = (typeof QUERY_KINDS)[number];

export interface Query {
  readonly kind: QueryKind;
  readonly childFilter: ChildFilter;
  readonly parentFilter: { readonly value: string; readonly not: boolean } | undefined;
  readonly figure: "count" | "total" | "largest" | "extra";
  readonly down: boolean;
  /** A threshold or a number of rows. */
  readonly k: number;
  /** Set only by a mistake. */
  readonly slip?: "inner" | "countStar" | "strict" | "noCoalesce" | "oneOfTies" | "inclusive";
}

export type ChildFilter =
  | { readonly on: "nothing" }
  | { readonly on: "kind"; readonly value: string; readonly not: boolean }
  | { readonly on: "amount"; readonly least: number; readonly strict: boolean }
  | { readonly on: "noExtra"; readonly not: boolean; readonly equals?: true }
  | { readonly on: "extra"; readonly most: number; readonly coalesce?: true };

export function answer(query: Query, parents: readonly Parent[], children: readonly Child[]): Json {
  const kept = children.filter((row) => passes(query.childFilter, row));
  const { parentFilter } = query;
  const chosen = parents.filter(
    ([, , label]) => parentFilter === undefined || (label === parentFilter.value) !== parentFilter.not,
  );
  const of = (id: number) => kept.filter((row) => row[1] === id);
  const byName = chosen.toSorted((a, b) => byText(a[1], b[1]));
  const sign = query.down ? -1 : 1;
  switch (query.kind) {
    case "list":
      return kept.toSorted((a, b) => sign * (a[3] - b[3]) || a[0] - b[0]).map((row) => [row[0], row[3]]);
    case "join":
      return byName.flatMap(([id, name]) =>
        of(id)
          .toSorted((a, b) => a[0] - b[0])
          .map((row) => [name, row[3]]),
      );
    case "outer":
      return byName
        .filter(([id]) => query.slip !== "inner" || of(id).length > 0)
        .map(([id, name]) => [name, outerFigure(query, of(id))]);
    case "missing":
      return byName.filter(([id]) => of(id).length === 0).map(([, name]) => [name]);
    case "best":
      return byName.flatMap(([id, name]) =>
        best(of(id), query.slip === "oneOfTies").map((row) => [name, row[0], row[3]]),
      );
    case "above": {
      const total = sum(kept.map((row) => row[3]));
      const beats = (row: Child) =>
        query.slip === "inclusive" ? row[3] * kept.length >= total : row[3] * kept.length > total;
      return kept
        .filter(beats)
        .toSorted((a, b) => a[0] - b[0])
        .map((row) => [row[0], row[3]]);
    }
    default: {
      const groups = byName
        .filter(([id]) => of(id).length > 0)
        .map(([id, name]): [string, number | null] => [name, figure(query, of(id))]);
      const sorted = groups.toSorted((a, b) => sign * (Number(a[1]) - Number(b[1])) || byText(a[0], b[0]));
      if (query.kind === "having")
        return sorted.filter(([, n]) => (query.slip === "strict" ? n! > query.k : n! >= query.k));
      return query.kind === "top" ? sorted.slice(0, query.k) : sorted;
    }
  }
}

function passes(filter: ChildFilter, [, , kind, amount, extra]: Child): boolean {
  switch (filter.on) {
    case "nothing":
      return true;
    case "kind":
      return (kind === filter.value) !== filter.not;
    case "amount":
      return filter.strict ? amount > filter.least : amount >= filter.least;
    case "noExtra":
      // In SQL, no comparison with NULL is true: neither `=` nor `<>`.
      return filter.equals ? false : (extra === null) !== filter.not;
    case "extra":
      return filter.coalesce ? (extra ?? 0) <= filter.most : extra !== null && extra <= filter.most;
    default:
      return filter satisfies never;
  }
}

function figure({ figure: what, slip }: Query, rows: readonly Child[]): number | null {
  const extras = rows.flatMap((row) => (row[4] === null ? [] : [row[4]]));
  switch (what) {
    case "count":
      return rows.length;
    case "total":
      return sum(rows.map((row) => row[3]));
    case "largest":
      return rows.length === 0 ? (slip === "noCoalesce" ? null : 0) : Math.max(...rows.map((row) => row[3]));
    case "extra":
      return extras.length === 0 && slip === "noCoalesce" ? null : sum(extras);
    default:
      return what satisfies never;
  }
}

function outerFigure(query: Query, rows: readonly Child[]): number | null {
  if (query.figure === "count" && query.slip === "countStar") return Math.max(1, rows.length);
  if (query.figure === "total" && query.slip === "noCoalesce" && rows.length === 0) return null;
  return figure(query, rows);
}

function best(rows: readonly Child[], oneOnly: boolean): Child[] {
  const most = Math.max(...rows.map((row) => row[3]));
  const top = rows.filter((row) => row[3] === most).toSorted((a, b) => a[0] - b[0]);
  return oneOnly ? top.slice(0, 1) : top;
}

function sum(values: readonly number[]): number {
  return values.reduce((a, b) => a + b, 0);
}

function byText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
