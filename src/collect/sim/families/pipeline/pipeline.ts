/** Programs made of operations: drawn, evaluated, described in English, rendered in two languages, and made wrong.
 *  In: randomness and a difficulty. Out: plain values. Runs no generated code. */
import type { Json, Rng } from "../../../../base/index.ts";
import { type Difficulty, type Language, pick } from "../family.ts";
import { ELEMENT_OPS } from "./element-ops.ts";
import { FINAL_OPS } from "./final-ops.ts";
import { NEIGHBOUR_OPS } from "./neighbour-ops.ts";
import type { Op, Params, Shape } from "./op.ts";
import { ORDER_OPS } from "./order-ops.ts";
import { TEXT_OPS } from "./text-ops.ts";
import { WORD_OPS } from "./word-ops.ts";

export interface PipelineStep {
  readonly op: Op;
  readonly params: Params;
}
export type Pipeline = readonly PipelineStep[];

export const OPS: readonly Op[] = [
  ...ELEMENT_OPS,
  ...ORDER_OPS,
  ...NEIGHBOUR_OPS,
  ...FINAL_OPS,
  ...TEXT_OPS,
  ...WORD_OPS,
];

/** Number of steps and their levels. Both grow with the difficulty. */
const PLAN: Readonly<Record<Difficulty, { steps: number; levels: readonly number[] }>> = {
  1: { steps: 1, levels: [1, 2] },
  2: { steps: 2, levels: [1, 2] },
  3: { steps: 3, levels: [1, 2, 3] },
  4: { steps: 4, levels: [2, 3] },
  5: { steps: 6, levels: [2, 3] },
};

export function drawPipeline(
  rng: Rng,
  difficulty: Difficulty,
  from: "numbers" | "text",
): Pipeline | undefined {
  const { steps, levels } = PLAN[difficulty];
  const pipeline: PipelineStep[] = [];
  let shape: Shape = from;
  for (let i = 0; i < steps; i++) {
    const fits = nextOps(
      shape,
      pipeline.map(({ op }) => op),
      { levels, last: i === steps - 1 },
    );
    if (fits.length === 0) return undefined;
    const op = pick(rng, fits);
    pipeline.push({ op, params: op.draw(rng) });
    shape = op.to;
  }
  return pipeline;
}

/** Number of structures: sequences of operations without parameters. Counted by walking the same choices as a draw. */
export function countPipelines(from: "numbers" | "text"): number {
  let count = 0;
  for (const { steps, levels } of Object.values(PLAN)) {
    // Counts only the first three steps. This lower bound is sufficient, and all steps would give millions.
    const walk = (shape: Shape, used: Op[], left: number): number => {
      if (left === 0) return 1;
      const fits = nextOps(shape, used, { levels, last: left === 1 });
      return fits.reduce((sum, op) => sum + walk(op.to, [...used, op], left - 1), 0);
    };
    count += walk(from, [], Math.min(steps, 3));
  }
  return count;
}

/** An operation occurs once. A pipeline ends early only if it must, and does not alternate between words and text. */
function nextOps(
  shape: Shape,
  used: readonly Op[],
  { levels, last }: { levels: readonly number[]; last: boolean },
): Op[] {
  return OPS.filter((op) => {
    if (op.from !== shape || used.includes(op)) return false;
    if (op.to === "number" && !last) return false;
    // A change of shape is needed at every difficulty, and is easy in itself.
    return levels.includes(op.level) || op.from !== op.to;
  });
}

/** Passes the value through JSON, like the answers of a program: an undefined value becomes null or absent in both. */
export function evaluate(pipeline: Pipeline, input: Json): Json {
  const value = pipeline.reduce<unknown>((now, { op, params }) => op.apply(now, params), input);
  return JSON.parse(JSON.stringify(value)) as Json;
}

export interface Naming {
  readonly functionName: string;
  readonly argument: string;
  readonly variable: string;
}

/** `first` is an opening statement of the function body. */
export function render(pipeline: Pipeline, language: Language, naming: Naming, first?: string): string {
  const opening = first === undefined ? [] : [first];
  return language === "javascript"
    ? renderJavascript(pipeline, naming, opening)
    : renderPython(pipeline, naming, opening);
}

function renderJavascript(
  pipeline: Pipeline,
  { functionName, argument, variable }: Naming,
  opening: readonly string[],
): string {
  const helpers = pipeline.flatMap(({ op, params }) => (op.helper ? [op.helper(params).javascript] : []));
  const lines = pipeline.map(
    ({ op, params }) => `  ${variable} = ${op.javascript(params).replaceAll("@", variable)};`,
  );
  const body = [
    ...opening.map((line) => `  ${line}`),
    `  let ${variable} = ${argument};`,
    ...lines,
    `  return ${variable};`,
  ];
  return [...helpers, `export function ${functionName}(${argument}) {\n${body.join("\n")}\n}`]
    .join("\n\n")
    .concat("\n");
}

function renderPython(
  pipeline: Pipeline,
  { functionName, argument, variable }: Naming,
  opening: readonly string[],
): string {
  const helpers = pipeline.flatMap(({ op, params }) => (op.helper ? [op.helper(params).python!] : []));
  const lines = pipeline.map(
    ({ op, params }) => `    ${variable} = ${op.python!(params).replaceAll("@", variable)}`,
  );
  const body = [
    ...opening.map((line) => `    ${line}`),
    `    ${variable} = ${argument}`,
    ...lines,
    `    return ${variable}`,
  ];
  const text = [...helpers, `def ${functionName}(${argument}):\n${body.join("\n")}`].join("\n\n\n");
  return `${text.includes("re.") ? "import re\n\n\n" : ""}${text}\n`;
}

/** Wrong variants of a pipeline: a slip inside a step, a missing step, two swapped neighbours. */
export function mistakesIn(pipeline: Pipeline): { pipeline: Pipeline; flaw: string }[] {
  const out: { pipeline: Pipeline; flaw: string }[] = [];
  pipeline.forEach(({ op, params }, i) => {
    for (const slip of op.slips(params))
      out.push({
        pipeline: pipeline.with(i, { op, params: slip.params }),
        flaw: `${slip.flaw} (${op.name})`,
      });
    const next = pipeline[i + 1];
    if (op.from === op.to)
      out.push({ pipeline: pipeline.toSpliced(i, 1), flaw: `forgets a step (${op.name})` });
    if (next !== undefined && op.from === op.to && next.op.from === next.op.to)
      out.push({
        pipeline: pipeline.with(i, next).with(i + 1, { op, params }),
        flaw: `does two steps in the wrong order (${op.name}, ${next.op.name})`,
      });
  });
  return out;
}

export function sayPipeline(pipeline: Pipeline, rng: Rng): string {
  const phrases = pipeline.map(({ op, params }) => pick(rng, op.say(params)));
  if (phrases.length === 1) return `${capital(phrases[0]!)}.`;
  if (rng.below(2) === 0) return phrases.map((phrase, i) => `${i + 1}. ${capital(phrase)}.`).join("\n");
  const links = ["Then", "After that,", "Next,", "Now", "With the result,"];
  return phrases
    .map((phrase, i) => {
      if (i === 0) return `First ${phrase}.`;
      return i === phrases.length - 1 ? `Finally ${phrase}.` : `${pick(rng, links)} ${phrase}.`;
    })
    .join(" ");
}

function capital(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}
