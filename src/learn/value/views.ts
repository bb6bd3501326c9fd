/** The views of a question: the parts that a learner reads. Pairs of words and prompt measures help in some logs and
 *  mislead in others. Numbers count in deviations or in their own units. Each view is tried, and held-out rows decide.
 *  In: the fitted columns. Out: one factor for every place of a row; 0 leaves the place out. Pure. */
import {
  denseSizeOf,
  embeddingAt,
  type FittedColumns,
  PROMPT_MEASURES,
  type ValueSpec,
} from "../../policy/index.ts";

/** `words`: without pairs of words and prompt measures. `raw`: the same, with numbers in their own units. */
export type View = "all" | "words" | "raw";

/** The views that differ from `all`. */
export type ViewFactors = { readonly [V in Exclude<View, "all">]?: Float64Array };

export function viewsOf(spec: ValueSpec, columns: FittedColumns): ViewFactors {
  const dense = denseSizeOf(spec);
  const words = new Float64Array(dense + columns.idf.length).fill(1);
  words.fill(0, 0, PROMPT_MEASURES);
  columns.idf.forEach((scale, column) => {
    if (scale < 0) words[dense + column] = 0;
  });
  const hasWords = columns.idf.some((scale) => scale !== 0);
  const raw = words.slice();
  const units = rawUnits(spec, columns);
  units.forEach((unit, i) => {
    raw[PROMPT_MEASURES + i] = unit;
  });
  return { ...(hasWords ? { words } : {}), ...(units.length === 0 ? {} : { raw }) };
}

/** Deviations of the numbers over their root mean square. They convert standardised numbers to one common unit. Empty
 *  if fewer than two numbers vary. */
function rawUnits(spec: ValueSpec, { factor }: FittedColumns): Float64Array {
  const deviations = factor
    .slice(PROMPT_MEASURES, embeddingAt(spec))
    .map((each) => (each === 0 ? 0 : 1 / each));
  const varying = deviations.filter((each) => each > 0);
  if (varying.length < 2) return new Float64Array(0);
  const size = Math.sqrt(varying.reduce((sum, each) => sum + each * each, 0) / varying.length);
  return deviations.map((each) => each / size);
}
