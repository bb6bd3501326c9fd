/** Declarations of simulated models: their success rates by task, their cost and their latency.
 *  In: YAML, or nothing for the five built-in models. Out: checked declarations. They define the models completely:
 *  every outcome and every expected value follows from them and from the proofs of the tasks. Runs nothing. */
import * as z from "zod";
import { type Digest, digestJson, RollbookError, withRemedy } from "../../../base/index.ts";
import { readDeclaration } from "./read-declaration.ts";

const probability = z.number().min(0).max(1);
const amount = z.number().min(0);
/** By difficulty from 1. The last entry also applies to all higher difficulties. */
const skill = z.array(probability).min(1).max(32);

const model = z.strictObject({
  name: z.string().regex(/^[A-Za-z0-9_][A-Za-z0-9_.:+-]{0,127}$/, "is not a name"),
  /** Probability that a first attempt is the reference solution. */
  skill,
  /** Skill in families that differ from the default. */
  families: z.record(z.string(), skill).default({}),
  /** Probability that an attempt after failed visible tests is the reference solution. */
  repair: probability,
  /** Maximum number of attempts before the model submits. */
  patience: z.number().int().min(1).max(4),
  /** True if the model reads the editable files before the first attempt, which costs a call. */
  looks: z.boolean().default(false),
  /** US dollars per million tokens. */
  price: z.strictObject({ prompt: amount, completion: amount }),
  /** Declared milliseconds until the first token and for each token. No code sleeps for them. */
  latency: z.strictObject({ firstMs: amount, tokenMs: amount }),
});

const schema = z.strictObject({
  schema: z.literal("rollbook.sim-models.v1"),
  models: z.array(model).min(1).max(64),
});

export type SimModel = z.output<typeof model>;

/** Uses the difficulty in the task's label, which a router never sees. */
export function skillOf({ skill, families }: SimModel, task: { family: string; difficulty: number }): number {
  const list = Object.hasOwn(families, task.family) ? families[task.family]! : skill;
  return list[Math.min(Math.max(task.difficulty, 1), list.length) - 1]!;
}

/** Number of calls of the longest course: a look, every attempt, the submission. */
export function mostCalls({ looks, patience }: SimModel): number {
  return (looks ? 1 : 0) + patience + 1;
}

export function digestModels(models: readonly SimModel[]): Digest {
  return digestJson("rollbook.sim-models.v1", models);
}

export function parseModels(text: string, where: string): SimModel[] {
  const { models } = readDeclaration(text, schema, (what) => bad(where, what));
  const names = models.map(({ name }) => name);
  const twice = names.find((name, i) => names.indexOf(name) !== i);
  if (twice !== undefined) throw bad(where, `two models are called ${twice}`);
  return models;
}

const CODE = ["js-bugfix", "js-implement", "py-bugfix", "py-implement"];
const DATA = ["json-transform", "log-forensics", "regex-from-examples", "sql-query"];
const THOUGHT = ["grid-planning", "word-problems"];

/** A strong expensive model, two cheap specialists, a model with long reasoning, and a very cheap model for easy tasks.
 *  No model is best everywhere: the best choice depends on the task's family and difficulty. */
export const DEFAULT_MODELS: readonly SimModel[] = [
  {
    name: "sim-large",
    skill: [0.96, 0.94, 0.91, 0.88, 0.84],
    families: inAll(THOUGHT, [0.85, 0.75, 0.65, 0.55, 0.45]),
    ...{ repair: 0.85, patience: 3, looks: false },
    price: { prompt: 3, completion: 15 },
    latency: { firstMs: 900, tokenMs: 12 },
  },
  {
    name: "sim-coder",
    skill: [0.6, 0.4, 0.25, 0.15, 0.1],
    families: inAll(CODE, [0.93, 0.86, 0.7, 0.4, 0.2]),
    ...{ repair: 0.4, patience: 3, looks: true },
    price: { prompt: 0.4, completion: 1.6 },
    latency: { firstMs: 400, tokenMs: 8 },
  },
  {
    name: "sim-scribe",
    skill: [0.5, 0.3, 0.2, 0.1, 0.08],
    families: inAll(DATA, [0.94, 0.9, 0.82, 0.6, 0.3]),
    ...{ repair: 0.35, patience: 2, looks: false },
    price: { prompt: 0.25, completion: 1 },
    latency: { firstMs: 300, tokenMs: 6 },
  },
  {
    name: "sim-thinker",
    skill: [0.7, 0.6, 0.5, 0.4, 0.3],
    families: inAll(THOUGHT, [0.93, 0.9, 0.86, 0.82, 0.78]),
    ...{ repair: 0.6, patience: 2, looks: false },
    price: { prompt: 0.8, completion: 4 },
    latency: { firstMs: 6000, tokenMs: 20 },
  },
  {
    name: "sim-small",
    skill: [0.97, 0.5, 0.2, 0.1, 0.05],
    families: {},
    ...{ repair: 0.3, patience: 2, looks: false },
    price: { prompt: 0.05, completion: 0.2 },
    latency: { firstMs: 150, tokenMs: 3 },
  },
];

function inAll(families: readonly string[], skill: readonly number[]): Record<string, number[]> {
  return Object.fromEntries(families.map((family) => [family, [...skill]]));
}

function bad(where: string, what: string): RollbookError {
  return new RollbookError(
    "bad-models",
    { where },
    `${where}: ${withRemedy(what, "Correct it; docs/reference/simulator.md lists what it may hold.")}`,
  );
}
