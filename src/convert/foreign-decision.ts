/** One logged decision of a foreign file: the form that every reader here yields.
 *  Readers stream: memory does not grow with the file. A bad row stops the reader with file and line. */
import { parseTime, RollbookError } from "../base/index.ts";
import type { RewardTerms } from "../learn/index.ts";

/** Sparse named features. A category is `name=value` with the value 1. */
export type NamedFeatures = readonly (readonly [name: string, value: number])[];

export interface ForeignDecision {
  /** Line of the file on which the decision begins, from 1. */
  readonly line: number;
  /** Index of the chosen candidate, from 0. */
  readonly action: number;
  /** Number of candidates, if the format states it. */
  readonly actions?: number;
  /** Undefined: unlabelled, which differs from 0. */
  readonly reward: number | undefined;
  /** Undefined: not logged. */
  readonly propensity: number | undefined;
  /** The logged probability of every candidate, if the format has it. */
  readonly distribution?: Float64Array;
  readonly context: NamedFeatures;
  /** The user's question, if the format has it. */
  readonly prompt?: string;
  /** Text fields of the request: categories by name, besides the numbers of `context`. */
  readonly texts?: Readonly<Record<string, string>>;
  /** Features of each candidate. */
  readonly candidates?: readonly NamedFeatures[];
  readonly episode?: string;
  readonly step?: number;
  /** Ending of the episode, if it ended at this step. */
  readonly ending?: "terminal" | "truncated" | "unknown";
  /** Id of the decision, if the format has one. */
  readonly id?: string;
  /** Time of the decision, if the format has one. */
  readonly atMs?: number;
  /** True if the time had no offset in the file and was read as UTC. */
  readonly isUtcAssumed?: true;
  /** Names of this row's candidates, if rows have different candidates. */
  readonly names?: readonly string[];
  readonly session?: string;
  /** The task of the question. Rows of one task stay in the same split. */
  readonly task?: string;
  /** Parts of the reward, and other measurements. */
  readonly terms?: RewardTerms;
}

export interface LinePlace {
  readonly file: string;
  readonly line: number;
}

export function badRow(
  { file, line }: LinePlace,
  what: string,
  remedy: string,
  cause?: unknown,
): RollbookError {
  return new RollbookError("bad-row", { file, line }, `${file}:${line}: ${what}. ${remedy}.`, { cause });
}

/** Returns a finite number, or throws an error that names column, file and line. */
export function toNumber(text: unknown, column: string, place: LinePlace): number {
  const value =
    typeof text === "number"
      ? text
      : typeof text === "string" && text.trim() !== ""
        ? Number(text)
        : Number.NaN;
  if (Number.isFinite(value)) return value;
  throw badRow(
    place,
    `${column} ${JSON.stringify(text ?? null)} is not a finite number`,
    "Repair the row or leave it out",
  );
}

/** A reward as a number, or as true and false. Undefined for an empty cell. */
export function toReward(value: unknown, column: string, place: LinePlace): number | undefined {
  const word = typeof value === "string" ? value.trim().toLowerCase() : value;
  if (word === true || word === "true") return 1;
  if (word === false || word === "false") return 0;
  if (word === undefined || word === null || word === "") return undefined;
  return toNumber(value, column, place);
}

/** Checks a propensity while reading, so that the error can name the line. */
export function toPropensity(text: unknown, column: string, place: LinePlace): number {
  const value = toNumber(text, column, place);
  if (value > 0 && value <= 1) return value;
  const remedy =
    value === 0
      ? "A choice that was made had a probability above 0; leave the cell empty where it is not known"
      : value > 1 && value <= 100
        ? "Repair the row or leave it out. Divide by 100 only if the whole column is in percent"
        : "Log the probability of the choice that was made";
  throw badRow(place, `${column} ${value} is not in (0, 1]`, remedy);
}

/** Maximum number of candidates: every row lists all of them. A larger index is an id in the wrong column. */
export const MAX_ACTIONS = 65_536;

/** The index of a candidate, checked before memory is allocated for that many candidates. */
export function toAction(text: unknown, column: string, place: LinePlace): number {
  const index = toIndex(text, column, place);
  if (index < MAX_ACTIONS) return index;
  throw badRow(
    place,
    `${column} ${index} is beyond the ${MAX_ACTIONS} candidates that a decision may have`,
    "Name the column of the choice",
  );
}

/** Time of a decision: ISO 8601 with a T or a space, or seconds or milliseconds since 1970. Empty for an empty cell. */
export function timeOf(
  value: unknown,
  column: string,
  place: LinePlace,
): Pick<ForeignDecision, "atMs" | "isUtcAssumed"> {
  const text = String(value ?? "");
  if (text === "") return {};
  const number = Number(text);
  // Seconds stay below this value until the year 5138. Milliseconds have been above it since 1973.
  const atMs = Math.round(number < 1e11 ? 1000 * number : number);
  if (Number.isSafeInteger(atMs)) return { atMs };
  const parsed = parseTime(text);
  if (parsed !== undefined)
    return { atMs: parsed.atMs, ...(parsed.offset === "assumed" ? { isUtcAssumed: true } : {}) };
  throw badRow(
    place,
    `${column} ${JSON.stringify(text)} is no time of ISO 8601, nor seconds or milliseconds since 1970`,
    "Write an existing date and time as 2026-05-31T10:00:00Z",
  );
}

export function toIndex(text: unknown, column: string, place: LinePlace): number {
  const value = toNumber(text, column, place);
  if (Number.isInteger(value) && value >= 0) return value;
  throw badRow(place, `${column} ${value} is not a whole number ≥ 0`, "Number the candidates from 0");
}

/** A field of the request: a number stays a number, other text is a category, an empty cell gives no field. */
export function toField(name: string, value: unknown): [string, string | number | boolean][] {
  if (value === undefined || value === null || value === "") return [];
  if (typeof value === "number" || typeof value === "boolean") return [[name, value]];
  const text = typeof value === "string" ? value : JSON.stringify(value);
  const number = text.trim() === "" ? Number.NaN : Number(text);
  return [[name, Number.isFinite(number) ? number : text]];
}
