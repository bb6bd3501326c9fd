/** Filters decisions, and explains an empty result.
 *  In: rows, a request. Out: true or false, or an error that names the filters and the available families. */
import { RollbookError } from "../../base/index.ts";
import type { LoggedRow } from "../../learn/index.ts";
import type { AdmittedRollouts } from "../rollouts/index.ts";
import type { DecisionRequest } from "./decision-rows.ts";

export function passes(row: LoggedRow, filters: DecisionRequest): boolean {
  return (
    (filters.session === undefined || row.session === filters.session) &&
    (filters.family === undefined || row.family === filters.family) &&
    (filters.dataSource === undefined || row.source === filters.dataSource) &&
    row.atMs >= (filters.sinceMs ?? Number.NEGATIVE_INFINITY) &&
    row.atMs < (filters.untilMs ?? Number.POSITIVE_INFINITY)
  );
}

/** Counts the rows read, to detect an empty result that the filters caused. */
export class FilterTally {
  readonly #request: DecisionRequest;
  readonly #families = new Set<string>();
  #read = 0;
  #passed = 0;

  constructor(request: DecisionRequest) {
    this.#request = request;
  }

  passes(row: LoggedRow): boolean {
    this.#read++;
    this.#families.add(row.family);
    if (!passes(row, this.#request)) return false;
    this.#passed++;
    return true;
  }

  /** `where` names the file or the store. */
  requireMatch(where: string): void {
    const filters = filterWords(this.#request);
    if (this.#passed > 0 || this.#read === 0 || filters.length === 0) return;
    throw noMatch(this.#request, `none of the ${this.#read} decisions of ${where} matches`, [
      ...this.#families,
    ]);
  }
}

/** Throws if the filters leave no rollout of these families to consider. */
export function requireSelected(admitted: readonly AdmittedRollouts[], request: DecisionRequest): void {
  const { family, ...filters } = request; // an unknown family is refused earlier
  if (admitted.some(hasOwn) || filterWords(filters).length === 0) return;
  throw noMatch(
    filters,
    `no rollout of ${family === undefined ? "the book" : `the family ${family}`} matches`,
    [],
  );
}

function hasOwn({ ledger }: AdmittedRollouts): boolean {
  const others = ledger
    .lostRollouts()
    .filter(({ reason }) => reason === "other-family" || reason === "other-level");
  return ledger.considered.artifacts > others.reduce((sum, { rollouts }) => sum + rollouts, 0);
}

function noMatch(request: DecisionRequest, what: string, families: readonly string[]): RollbookError {
  const filters = filterWords(request);
  const there =
    request.family === undefined ? "" : ` The families there: ${[...families].sort().join(", ")}.`;
  const timeless =
    request.sinceMs === undefined
      ? ""
      : " Rows that were imported without a time (`--map time=…`) match no --since.";
  return new RollbookError(
    "empty-split",
    { filters, families },
    `${what} ${filters.join(" ")}.${there}${timeless} Correct ${filters.length === 1 ? "the filter" : "the filters"}, or leave ${filters.length === 1 ? "it" : "them"} out.`,
  );
}

/** Filters as typed on the command line. */
function filterWords({
  family,
  experiment,
  session,
  dataSource,
  sinceMs,
  untilMs,
}: DecisionRequest): string[] {
  const day = (ms: number) => new Date(ms).toISOString();
  return [
    ...(family === undefined ? [] : [`--family ${family}`]),
    ...(experiment === undefined ? [] : [`--exp ${experiment}`]),
    ...(session === undefined ? [] : [`--session ${session}`]),
    ...(dataSource === undefined ? [] : [`--data-source ${dataSource}`]),
    ...(sinceMs === undefined ? [] : [`--since ${day(sinceMs)}`]),
    ...(untilMs === undefined ? [] : [`--until ${day(untilMs)}`]),
  ];
}
