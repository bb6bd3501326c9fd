/** Tasks that turn JSON records into other JSON: filter, unfold, derive, sort, group. JavaScript. */
import type { Rng } from "../../../base/index.ts";
import { type Args, codeTask } from "./code-task.ts";
import { type Difficulty, type Family, pick, sample } from "./family.ts";
import {
  evaluate,
  mistakesIn,
  type Op,
  type Pipeline,
  type PipelineStep,
  render,
  sayPipeline,
} from "./pipeline/index.ts";
import {
  drawRecords,
  flatten,
  type JsonRecord,
  recordOps,
  SCHEMAS,
  type Schema,
  shapeOps,
} from "./records/index.ts";

/** Number of steps before the final shape, a flag for unfolding inner lists, and the levels of the shape. */
const PLAN: Readonly<Record<Difficulty, { before: number; unfolds: boolean; shapes: readonly number[] }>> = {
  1: { before: 0, unfolds: false, shapes: [1, 2] },
  2: { before: 1, unfolds: false, shapes: [1, 2] },
  3: { before: 2, unfolds: false, shapes: [2, 3] },
  4: { before: 2, unfolds: true, shapes: [2, 3] },
  5: { before: 4, unfolds: true, shapes: [3] },
};

export const jsonTransform: Family = {
  name: "json-transform",
  language: "javascript",
  summary: "turn a list of JSON records into another JSON value",
  grows:
    "0 to 4 filters, derived fields and sorts before the final shape; unfolding of inner lists; missing fields; ties",
  structures: countStructures(),
  draw(rng, difficulty) {
    const schema = pick(rng, SCHEMAS);
    const pipeline = drawSteps(rng, schema, difficulty);
    const functionName = pick(rng, ["transform", "convert", "reshape", "condense", "project"]);
    const naming = { functionName, argument: schema.plural, variable: pick(rng, ["rows", "result", "data"]) };
    const said = sayPipeline(pipeline, rng);
    const intro = pick(rng, INTROS)(functionName, schema.plural);
    return codeTask({
      language: "javascript",
      functionName,
      statement: () => `${intro}\n\n${describe(schema)}\n\n${said}`,
      evaluate: ([input]) => evaluate(pipeline, input!),
      reference: render(pipeline, "javascript", naming),
      start: {
        source: `export function ${functionName}(${schema.plural}) {\n  return ${schema.plural};\n}\n`,
        evaluate: ([input]) => input!,
      },
      mistakes: mistakesIn(pipeline).map((wrong) => ({
        flaw: wrong.flaw,
        source: render(wrong.pipeline, "javascript", naming),
        evaluate: ([input]) => evaluate(wrong.pipeline, input!),
      })),
      ...inputs(rng, schema),
      visibleCases: 2,
    });
  },
};

function drawSteps(rng: Rng, schema: Schema, difficulty: Difficulty): Pipeline {
  const { before, unfolds, shapes } = PLAN[difficulty];
  const unfolded = unfolds ? flatten(schema) : undefined;
  const now = unfolded?.after ?? schema;
  const step = (op: Op): PipelineStep => ({ op, params: op.draw(rng) });
  const kept = inOrder(sample(rng, recordOps(now), before));
  const shape = pick(
    rng,
    shapeOps(now).filter((op) => shapes.includes(op.level)),
  );
  return [...(unfolded ? [step(unfolded.op)] : []), ...kept.map(step), step(shape)];
}

/** A limit without a preceding sort would depend on the order of the input, which the statement does not define. */
function inOrder(ops: readonly Op[]): Op[] {
  const last = (op: Op) => (op.name === "limit" ? 2 : op.name === "sort-by" ? 1 : 0);
  return ops.toSorted((a, b) => last(a) - last(b));
}

function inputs(rng: Rng, schema: Schema): { plain: Args[]; edges: Args[] } {
  const draw = (count: number, missing: boolean): Args => [
    drawRecords(rng, schema, { count, missing }) as JsonRecord[],
  ];
  return {
    plain: Array.from({ length: 5 }, () => draw(4, false)),
    edges: [
      [[]],
      draw(1, false),
      ...Array.from({ length: 6 }, () => draw(5, true)),
      ...Array.from({ length: 6 }, () => draw(9, true)),
      ...Array.from({ length: 4 }, () => tied(rng, draw(7, false), schema)),
    ],
  };
}

/** Uses only two values, so that there are ties to break. */
function tied(rng: Rng, [records]: Args, schema: Schema): Args {
  const field = schema.numbers[0]!;
  return [(records as JsonRecord[]).map((r) => ({ ...r, [field.name]: field.low + rng.below(2) }))];
}

function describe({ key, labels, numbers, flags, inner, plural }: Schema): string {
  const optional = (fields: Schema["numbers"]) =>
    fields.map(({ name, mayMiss }) => `${name}${mayMiss ? " (may be absent)" : ""}`).join(", ");
  return [
    `The argument is a list of ${plural}. Each has a unique number ${key}`,
    `the texts ${labels.map(({ name }) => name).join(", ")}`,
    `the numbers ${optional(numbers)}`,
    `the flag ${flags.join(", ")}`,
    `and a list ${inner!.field} of objects with ${inner!.labels.map(({ name }) => name).join(", ")}, ${optional(inner!.numbers)}.`,
  ].join(", ");
}

const INTROS: readonly ((name: string, plural: string) => string)[] = [
  (name, plural) =>
    `Complete \`${name}\` in \`solution.mjs\` so that it turns our ${plural} into what the report needs.`,
  (name, plural) =>
    `An export of ${plural} has to be brought into another form. Write \`${name}(${plural})\` in \`solution.mjs\`.`,
  (name, plural) =>
    `\`solution.mjs\` should export \`${name}\`, which takes ${plural} as parsed JSON and returns JSON. So far it returns its argument.`,
  (name, plural) =>
    `The dashboard wants ${plural} in a different shape; \`${name}\` in \`solution.mjs\` does the conversion, once you have written it.`,
];

function countStructures(): number {
  const before = recordOps(SCHEMAS[0]!).length;
  const choose = (n: number, k: number): number => (k === 0 ? 1 : (choose(n - 1, k - 1) * n) / k);
  return Object.values(PLAN).reduce((sum, plan) => {
    // Unfolded records have no flag, so one operation fewer is available.
    const available = plan.unfolds ? before - 1 : before;
    const shapes = shapeOps(SCHEMAS[0]!).filter((op) => plan.shapes.includes(op.level)).length;
    return sum + choose(available, Math.min(plan.before, available)) * shapes * SCHEMAS.length;
  }, 0);
}
