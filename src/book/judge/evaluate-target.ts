/** Judges a policy by its probabilities: a column of the log, or a file beside it.
 *  In: a source of decisions, the name of a field or feature, or the path of a file. Out: the report of `evaluateTarget`.
 *  A file is CSV or JSON Lines. CSV: `decision_id` and one column per candidate, or `decision_id,probability` for the chosen
 *  one. JSON Lines: `decision_id` and `probabilities` (candidate → number), or `probability`. Writes nothing. */
import { existsSync } from "node:fs";
import { given, isObject, RollbookError, rngFrom } from "../../base/index.ts";
import { type JsonFields, readJsonLines, readTable } from "../../convert/index.ts";
import {
  evaluateTarget,
  type KnownTargetReport,
  type TargetProbabilities,
  toJudgedRows,
} from "../../judge/index.ts";
import type { Range } from "../../judge/ope/index.ts";
import { hasChains, type LoggedRow, type SplitUnit } from "../../learn/index.ts";
import {
  type DecisionRequest,
  type DecisionSource,
  loadDecisions,
  requireDecisions,
} from "../decisions/index.ts";

interface TargetRequest extends Omit<DecisionRequest, "target"> {
  /** Numeric field of the rows (π_e of the choice), feature of the candidates (π_e of each), or path of a file. */
  readonly target: string;
  readonly unit?: SplitUnit | undefined;
  readonly qualityRange?: Range | undefined;
  readonly seed?: bigint | undefined;
}

/** `chained` is true if rollouts have several decisions, although each decision is judged by its own reward. */
export async function evaluateKnownTarget(
  source: DecisionSource,
  { target: named, ...request }: TargetRequest,
): Promise<KnownTargetReport & { readonly unlabelled: number; readonly chained: boolean }> {
  // In a request to a book, `target` would be a policy revision.
  const { rows } = await loadDecisions(source, { ...request, unlabelled: "keep" });
  const logged = requireDecisions(rows);
  const labelled = logged.filter(({ reward }) => reward !== null).sort((a, b) => a.atMs - b.atMs);
  const target = existsSync(named)
    ? fromFile(labelled, await readTarget(named), named)
    : fromColumn(labelled, named);
  const report = evaluateTarget(toJudgedRows(labelled, request.unit ?? "task").rows, {
    target,
    unit: request.unit,
    rng: rngFrom(request.seed ?? 0n),
    ranges: given({ quality: request.qualityRange }),
  });
  return { ...report, unlabelled: logged.length - labelled.length, chained: hasChains(labelled) };
}

function fromColumn(rows: readonly LoggedRow[], name: string): TargetProbabilities {
  if (rows.every(({ candidates }) => candidates.every(({ features }) => features[name] !== undefined)))
    return { of: "candidates", values: rows.map((row) => row.candidates.map((one) => one.features[name]!)) };
  if (rows.every(({ context }) => typeof context.fields[name] !== "number"))
    throw new RollbookError(
      "bad-target",
      { column: name },
      `--target-probabilities ${name}: there is no such file, and the rows have no number of this name in state.fields or in features of every candidate. ${columnsIn(rows)} Name the column or file that holds the target's probabilities.`,
    );
  return {
    of: "chosen",
    values: rows.map(({ id, context }) => {
      const value = context.fields[name];
      if (typeof value === "number") return [value];
      throw new RollbookError(
        "bad-target",
        { decision: id, column: name },
        `decision ${id} has no numeric field ${name}, and other rows have one. Add the field, or name a column or file that covers every row.`,
      );
    }),
  };
}

/** Lists the columns that may hold probabilities. */
function columnsIn(rows: readonly LoggedRow[]): string {
  const fields = rows.flatMap(({ context }) =>
    Object.entries(context.fields).flatMap(([name, value]) => (typeof value === "number" ? [name] : [])),
  );
  const features = rows.flatMap(({ candidates }) => candidates.flatMap((one) => Object.keys(one.features)));
  return `Numeric fields: ${listed(fields)}. Features: ${listed(features)}.`;
}

function listed(names: readonly string[]): string {
  const all = [...new Set(names)].sort();
  const more = all.length > MOST_LISTED ? ` and ${all.length - MOST_LISTED} more` : "";
  return all.length === 0 ? "none" : `${all.slice(0, MOST_LISTED).join(", ")}${more}`;
}

const MOST_LISTED = 10;

type TargetOf = number | Readonly<Record<string, number>>;

function fromFile(
  rows: readonly LoggedRow[],
  found: ReadonlyMap<string, TargetOf>,
  file: string,
): TargetProbabilities {
  const each = rows.map(({ id, candidates }) => {
    // A book names a decision by its rollout; the imported log only has the rollout's id.
    const target = found.get(id) ?? found.get(id.replace(/\/0\/0$/, ""));
    if (target === undefined)
      throw new RollbookError(
        "bad-target",
        { decision: id, file },
        `decision ${id}: ${file} has no target probability for it. Write one for every labelled decision, under its decision_id as \`rollbook data export\` writes it.`,
      );
    if (typeof target === "number") return target;
    const ids = candidates.map((one) => one.id);
    if (ids.every((candidate) => target[candidate] === undefined))
      throw new RollbookError(
        "bad-target",
        { decision: id, file },
        `${file} has no target probability for the candidates of decision ${id}. ${isJsonLines(file) ? `The object probabilities needs one entry per candidate (${listed(ids)}). It has: ${listed(Object.keys(target))}. Rename the entries.` : `It needs the column probability and no other beside decision_id, or one column per candidate (${listed(ids)}). It has decision_id and: ${listed(Object.keys(target))}. Rename the columns.`}`,
      );
    return ids.map((candidate) => target[candidate] ?? 0);
  });
  const whole = each.filter((one) => typeof one !== "number");
  if (whole.length === each.length) return { of: "candidates", values: whole };
  if (whole.length === 0) return { of: "chosen", values: each.map((one) => [one as number]) };
  throw new RollbookError(
    "bad-target",
    { file },
    `${file}: some decisions have the probability of every candidate, others of the chosen one alone. Write one kind.`,
  );
}

const isJsonLines = (file: string) => /\.(jsonl|ndjson|json)(\.gz)?$/.test(file);

async function readTarget(file: string): Promise<Map<string, TargetOf>> {
  const found = new Map<string, TargetOf>();
  if (isJsonLines(file)) {
    for await (const { value, place } of readJsonLines(file, "One decision per line"))
      found.set(String(value.decision_id), targetOf(value, place));
    return found;
  }
  const rows = readTable(file, ["decision_id"], (header) => {
    const named = [...header].filter(([name]) => name !== "decision_id");
    const isChosen = named.length === 1 && named[0]![0] === "probability";
    return ({ fields, line }) => {
      const values = named.map(([name, at]): [string, number] => [name, numberIn(fields[at]!, isChosen)]);
      const wrong = values.find(([, value]) => Number.isNaN(value));
      if (wrong !== undefined)
        throw new RollbookError(
          "bad-target",
          { file, line, column: wrong[0] },
          `${file}:${line}: the column ${wrong[0]} holds no number. Write a probability from 0 to 1.`,
        );
      const target: TargetOf = isChosen ? values[0]![1] : Object.fromEntries(values);
      return { id: fields[header.get("decision_id")!]!, target };
    };
  });
  for await (const { id, target } of rows) found.set(id, target);
  return found;
}

/** An empty cell is 0 for a candidate, because a row may not offer it; the chosen candidate has a probability. */
function numberIn(cell: string, isChosen: boolean): number {
  if (cell.trim() === "") return isChosen ? Number.NaN : 0;
  return Number(cell);
}

function targetOf(
  { decision_id: _, ...fields }: JsonFields,
  { file, line }: { file: string; line: number },
): TargetOf {
  const { probability, probabilities } = fields;
  if (isObject(probabilities) && Object.values(probabilities).every((each) => typeof each === "number"))
    return probabilities as Record<string, number>;
  if (probabilities === undefined && typeof probability === "number") return probability;
  throw new RollbookError(
    "bad-target",
    { file, line },
    `${file}:${line}: no target probability. A line needs the object probabilities, with one number per candidate, or the number probability, that of the logged choice. It has ${JSON.stringify(fields).slice(0, MOST_CHARACTERS)}. Correct the line.`,
  );
}

const MOST_CHARACTERS = 200;
