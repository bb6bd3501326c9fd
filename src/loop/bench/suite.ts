/** Defines a benchmark suite: tasks, models, arms and repetitions. A YAML file, read strictly.
 *  In: text and the folder that its paths are relative to. Out: a checked suite with its digest. Reads no other
 *  file. */
import { isAbsolute, join } from "node:path";
import * as z from "zod";
import { type Digest, digestJson, RollbookError, withRemedy } from "../../base/index.ts";
import { BEHAVIOURS, DIFFICULTIES, FAMILIES } from "../../collect/sim/index.ts";
import { configProblem } from "../../contract/index.ts";
import { readYaml } from "../../policy/index.ts";
import { learnerSchema } from "../learner.ts";

const name = z
  .string()
  .regex(/^[a-z0-9][a-z0-9-]{0,63}$/, "is not a name of lower-case letters, digits and -");
const path = z.string().min(1).max(4096);
const share = z.number().min(0).max(1);
const difficulty = z
  .number()
  .refine((value) => (DIFFICULTIES as readonly number[]).includes(value), "is not a difficulty from 1 to 5");

const tasks = z.union([
  z.strictObject({
    /** Number of tasks to draw and prove. Families and difficulties alternate; the first half of each round is for
     *  training. */
    count: z.number().int().min(4).max(100_000),
    seed: z.number().int().min(0).default(0),
    families: z.optional(z.array(z.enum(FAMILIES.map((family) => family.name))).min(1)),
    difficulties: z.optional(z.array(difficulty).min(1)),
    engine: z.enum(["quickjs", "bubblewrap", "docker", "auto"]).default("quickjs"),
  }),
  /** Folder that `rollbook sim generate` wrote. */
  z.strictObject({ folder: path }),
]);

const arm = z.strictObject({ name, learner: learnerSchema, floor: share.default(0) });

const suiteSchema = z.strictObject({
  suite: name,
  about: z.string().max(512).default(""),
  tasks,
  /** YAML file of simulated models (default: the built-in models). */
  models: z.optional(path),
  /** Weights of cost and latency in the reward (default: those of the simulator). */
  reward: z.optional(
    z.strictObject({
      cost: z.strictObject({ weight: z.number().min(0), perUsd: z.number().gt(0) }),
      latency: z.strictObject({ weight: z.number().min(0), perMs: z.number().gt(0) }),
    }),
  ),
  /** Log that every arm learns from. */
  train: z
    .strictObject({
      decisions: z.number().int().min(10).max(10_000_000).default(6000),
      behaviour: z.enum(BEHAVIOURS).default("softmax"),
      epsilon: share.default(0.3),
    })
    .prefault({}),
  /** Learned arms. The static table fitted on the same log is always an arm, and the baseline. */
  arms: z.array(arm).min(1, "the list is empty. Name at least one learner").max(64),
  /** Number of training logs; each is drawn with another seed. */
  repetitions: z
    .number()
    .int()
    .min(2, "must be at least 2, because intervals need two repetitions")
    .max(1000)
    .default(5),
  seed: z.number().int().min(0).default(0),
  level: z.number().gt(0.5).lt(1).default(0.95),
});

/** Name of the baseline of every suite. */
export const TABLE_ARM = "table";

type SuiteConfig = z.output<typeof suiteSchema>;
export interface Suite extends SuiteConfig {
  /** Digest of everything that a result depends on, except the files that the suite names. */
  readonly digest: Digest;
}

export function parseSuite(text: string, where: string, folder: string): Suite {
  const value = readYaml(text, (what) => bad(where, what)) ?? {};
  const result = suiteSchema.safeParse(value);
  if (!result.success) throw bad(where, configProblem(suiteSchema, result.error.issues, value));
  return suiteOf(result.data, where, folder);
}

/** Checks rules that involve several fields, and makes paths absolute. */
export function suiteOf(config: SuiteConfig, where: string, folder: string): Suite {
  const names = config.arms.map((each) => each.name);
  const twice = names.find((each, i) => names.indexOf(each) < i);
  if (twice !== undefined) throw bad(where, `two arms are named ${twice}`);
  if (names.includes(TABLE_ARM)) throw bad(where, `arm ${TABLE_ARM} is the baseline, which is always there`);
  const { about: _, models, ...rest } = config;
  const at = (file: string) => (isAbsolute(file) ? file : join(folder, file));
  return {
    ...config,
    ...("folder" in config.tasks ? { tasks: { folder: at(config.tasks.folder) } } : {}),
    ...(models === undefined ? {} : { models: at(models) }),
    arms: config.arms.map((each) =>
      "features" in each.learner && each.learner.features !== undefined
        ? { ...each, learner: { ...each.learner, features: at(each.learner.features) } }
        : each,
    ),
    digest: digestJson("rollbook.bench-suite.v1", rest),
  };
}

function bad(where: string, problem: string): RollbookError {
  return new RollbookError(
    "bad-suite",
    { where, problem },
    `${where}: ${withRemedy(problem, "See docs/prove.md.")}`,
  );
}
