/** One part of the judge's table: a data set, its figures, and the bar for each figure. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { RollbookError } from "../../src/base/errors.ts";
import type { Rng } from "../../src/base/rng.ts";
import type { TrialFile } from "../support/trial-file.ts";

export interface JudgeOptions {
  /** The folder of the public data sets. */
  readonly data: string;
  readonly rng: Rng;
  /** 1 is the full number of repetitions and draws. */
  readonly scale: number;
  /** The file in which long parts store their trials. */
  readonly trials: TrialFile;
}

export interface JudgePart {
  readonly name: string;
  run(options: JudgeOptions): Promise<JudgeRow[]>;
}

export interface JudgeRow {
  readonly set: string;
  readonly figure: string;
  readonly value: string;
  readonly bar: string;
  readonly met: "yes" | "NO" | "";
}

/** A row with a bar. Without a bar the figure is printed for information only. */
export function row(
  set: string,
  figure: string,
  value: string,
  bar?: { text: string; met: boolean },
): JudgeRow {
  return { set, figure, value, bar: bar?.text ?? "", met: bar === undefined ? "" : bar.met ? "yes" : "NO" };
}

/** A number that must equal `wanted` when rounded to its digits. */
export function equalTo(value: number, wanted: number, digits: number): { text: string; met: boolean } {
  return { text: `= ${wanted}`, met: value.toFixed(digits) === wanted.toFixed(digits) };
}

export function between(value: number, low: number, high: number): { text: string; met: boolean } {
  return { text: `${low} … ${high}`, met: value >= low && value <= high };
}

export function dataFile(data: string, name: string): string {
  const path = join(data, name);
  if (existsSync(path)) return path;
  throw new RollbookError(
    "data-absent",
    { path },
    `${path} is absent. Give the folder of the public data sets with --data, or set ROLLBOOK_DATA.`,
  );
}
