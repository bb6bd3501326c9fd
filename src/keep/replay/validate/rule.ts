/** A rule of the validator: the columns it reads, and its checks. A rule is skipped if one of its columns is damaged or
 *  has invalid references. That has already been reported, and consequential errors would only hide it. */
import type { ReplayManifest, ReplaySegment } from "../../../contract/index.ts";
import type { ColumnName, SegmentReader, TableName } from "../tables/index.ts";
import type { ReplayErrorCode } from "./findings.ts";

type ColumnLists = { readonly [T in TableName]?: readonly ColumnName<T>[] };

export interface RuleContext {
  readonly reader: SegmentReader;
  readonly entry: ReplaySegment;
  readonly manifest: ReplayManifest;
  /** Reports an error of a column; the path of the segment is added. */
  report(array: string, row: number | null, code: ReplayErrorCode, reason: string): void;
  /** Excludes a column from all later rules. */
  distrust(array: string): void;
}

export interface Rule {
  readonly needs: ColumnLists;
  check(context: RuleContext): Promise<void>;
}

export function pathsOf(lists: ColumnLists): string[] {
  return Object.entries(lists).flatMap(([table, columns]) => columns.map((column) => `${table}/${column}`));
}

/** Equal bit by bit: NaN equals NaN, and 0 is not −0. */
export function sameBits(a: number, b: number): boolean {
  return Object.is(a, b);
}
