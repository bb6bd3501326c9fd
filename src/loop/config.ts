/** Defines the configuration of a training loop: a YAML file, read strictly, so that a misspelt key is an error.
 *  In: text and the folder that its paths are relative to. Out: a checked configuration. Reads no other file. */
import { isAbsolute, join } from "node:path";
import * as z from "zod";
import { type Digest, digestJson, parseId, RollbookError, withRemedy } from "../base/index.ts";
import { ENGINES } from "../book/sim/index.ts";
import { queueDriver } from "../collect/queue/index.ts";
import { BEHAVIOURS, DIFFICULTIES } from "../collect/sim/index.ts";
import { configProblem, splitUnit } from "../contract/index.ts";
import { readYaml } from "../policy/index.ts";
import { type LearnerConfig, learnerSchema } from "./learner.ts";
import {
  isTokenLearner,
  TOKEN_MACHINE,
  type TokenLearnerConfig,
  tokenLearner,
  tokenWorld,
} from "./token-config.ts";

const path = z.string().min(1).max(4096);
const share = z.number().min(0).max(1);
const positive = z.number().int().min(1);
const amount = z.number().min(0);

const simulator = z.strictObject({
  kind: z.literal("simulator").describe("Tasks of the simulator, and its models."),
  tasks: path.describe("The folder that `rollbook sim generate` wrote."),
  generate: z
    .optional(
      z.strictObject({
        count: positive.describe("Number of tasks."),
        seed: z.number().int().min(0).default(0).describe("Seed of the tasks."),
        families: z
          .optional(z.array(z.string().min(1)).min(1))
          .describe("Families of tasks, by name (default: all that the engine runs)."),
        difficulties: z
          .array(z.literal([...DIFFICULTIES]))
          .min(1)
          .default([...DIFFICULTIES])
          .describe("Difficulties of the tasks."),
      }),
    )
    .describe("Makes that folder when the run starts, if it does not exist."),
  models: z.optional(path).describe("Simulated models in YAML (default: the built-in ones)."),
  fast: z
    .boolean()
    .default(true)
    .describe(
      "Runs no programs in a sandbox: looks up the results that `sim generate` stored with the tasks.",
    ),
  engine: z.enum(ENGINES).default("auto").describe("The sandbox that runs programs."),
});

const agent = z.strictObject({
  kind: z.literal("agent").describe("Your own agent, through a gateway."),
  agent: path.describe("A .js, .mjs, .ts or .py file, an executable, or a server's URL."),
  tasks: path.describe("JSON Lines, as for `rollbook launch`."),
  gateway: path.describe("The configuration of a gateway; the loop opens it."),
  route: z
    .string()
    .min(1)
    .default("auto")
    .describe("The route of the gateway among whose models the policy chooses."),
  environment: z
    .string()
    .default("local@1")
    .describe("The environment that rollouts name, with its version."),
  family: z
    .string()
    .min(1)
    .optional()
    .describe(
      "The policy family that choices are logged under and policies are trained in (default: `router`). A gateway that serves them names the same one in `router.family`.",
    ),
});

const MOST_WORKERS = 1024;
const DEFAULT_WORKERS = 4;
const EVERY_NUMBER: readonly number[] = Array.from({ length: MOST_WORKERS + 1 }, (_, n) => n);

export const configSchema = z.strictObject({
  run: z
    .string()
    .regex(
      /^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/,
      "must be letters, digits, - _ and . (at most 64), and begin with a letter or a digit",
    )
    .default("loop")
    .describe("The name of the run: ids of rollouts and revisions begin with it."),
  book: z
    .optional(path)
    .describe("The book, unless `--book` names another (default: `$ROLLBOOK_BOOK`, else `.rollbook`)."),
  world: z
    .discriminatedUnion("kind", [simulator, agent, tokenWorld])
    .describe("Where rollouts come from. The other keys of this section depend on `kind`."),
  windows: positive.max(10_000).describe("Windows of the run."),
  rollouts: positive.describe("Rollouts of one window."),
  samples: positive.default(1).describe("Rollouts of each task in a window."),
  workers: z
    .number()
    .int()
    .min(0)
    .max(MOST_WORKERS)
    .default(DEFAULT_WORKERS)
    .describe("Rollouts at a time in this process. 0 with `queue`: only workers elsewhere run them."),
  queue: z
    .optional(z.string().refine((place) => queueDriver(place).isRemote, "is not a nats:// or tls:// URL"))
    .describe(
      "A queue on NATS that `rollbook worker` joins from other machines, for `kind: agent` (default: a file in the book).",
    ),
  gateways: z
    .optional(z.array(z.url({ protocol: /^https?$/ })).min(1))
    .describe(
      "Gateways that run on the same book, for `kind: agent` (default: the loop opens one). Their file is `world.gateway`.",
    ),
  gatewayTokenEnv: z
    .optional(z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, "is not the name of an environment variable"))
    .describe("The environment variable with the access token of `gateways`."),
  learner: z
    .optional(z.discriminatedUnion("kind", [...learnerSchema.options, tokenLearner]))
    .describe("The learner. The other keys of this section depend on `kind`."),
  learners: z
    .optional(z.array(learnerSchema).min(2).max(16))
    .describe(
      "Several learners instead of one, trained from the same batch. Of the policies that pass the gate, the best is released.",
    ),
  behaviour: z
    .strictObject({
      policy: z.enum(BEHAVIOURS).default("uniform").describe("The policy."),
      epsilon: z
        .optional(share)
        .describe("Share of uniformly random choices, for `epsilon-greedy` and `softmax` (default: 0.1)."),
      temperature: z.optional(z.number().gt(0)).describe("Temperature, for `softmax` (default: 0.5)."),
    })
    .prefault({})
    .describe("The policy that chooses in window 1, and until a policy is released."),
  exploration: z
    .strictObject({
      collect: share.default(0.2).describe("Share of uniformly random choices while a window collects."),
      serve: share.default(0.02).describe("Share of uniformly random choices of the served policy."),
    })
    .prefault({})
    .describe("Uniformly random choices, so that logs support the evaluation of other policies."),
  table: z
    .optional(path)
    .describe(
      "A static table, which decides below the floor and in the behaviour. Default: below the floor, a table that training fits; in the behaviour, the first model.",
    ),
  floor: z
    .optional(
      z.union([
        share,
        z.strictObject({
          risk: share.describe(
            "Highest expected loss of a decision: 0 if it agrees with the table, else (highest quality - quality of the decision) / (highest - lowest quality).",
          ),
        }),
      ]),
    )
    .describe(
      "Confidence below which the table decides: a number, or the risk that training computes it from.",
    ),
  split: z
    .strictObject({
      unit: splitUnit
        .default("task")
        .describe("Grouping key: rows with the same key stay in the same split."),
      shares: z
        .tuple([share, share, share])
        .default([0.6, 0.2, 0.2])
        .describe("Shares for training, for calibration and for judging."),
      salt: z.string().max(256).default("loop").describe("Text that changes the split."),
    })
    .prefault({})
    .describe("How the log is split: a policy is never judged by rows it has learned from."),
  gate: z
    .strictObject({
      baseline: z
        .enum(["released", "static", "behaviour"])
        .default("released")
        .describe(
          "The policy that a new policy must not be worse than. `released`: the newest release of the book, by this run or another; before any release, the behaviour of this run. `static`: the table. `behaviour`: the policies that collected the judged rollouts.",
        ),
      method: z
        .enum(["student-t", "empirical-bernstein"])
        .default("student-t")
        .describe(
          "How the interval is computed. `empirical-bernstein` needs a quality between 0 and 1 in every row.",
        ),
      alpha: z.number().gt(0).lt(1).default(0.05).describe("Probability that a worse policy passes."),
      epsilonQuality: amount
        .default(0)
        .describe("Non-inferiority margin on quality: the reward without its cost and latency terms."),
      epsilonCost: z
        .nullable(amount)
        .default(null)
        .describe("Non-inferiority margin on cost; null: cost is not judged."),
      propensityFloor: z
        .optional(share)
        .describe("The least probability of a logged choice, for `empirical-bernstein` (default: 0.05)."),
      costRange: z
        .optional(
          z.strictObject({
            low: z.number().describe("The lowest cost."),
            high: z.number().describe("The highest cost."),
          }),
        )
        .describe("Range of costs, for `empirical-bernstein`."),
    })
    .prefault({})
    .describe("When a new policy is released."),
  replay: z
    .optional(path)
    .describe(
      "A replay store that grows by the admitted rollouts of each window (default: none is written).",
    ),
  discount: z
    .optional(share)
    .describe(
      "For rollouts with several decisions: factor of a reward that comes one decision later (default: 1). The label of a decision in training is the sum of its own and later rewards, and the gate judges whole rollouts. 0: the label is the decision's own reward, and the gate judges each decision by it.",
    ),
  data: z
    .enum(["window", "all"])
    .default("all")
    .describe("Which rollouts a window trains and judges from: its own, or those of all windows so far."),
  freshness: z
    .optional(
      z.strictObject({
        drift: z.number().int().min(0).describe("Number of releases that a rollout may be behind."),
      }),
    )
    .describe(
      "Which rollouts are too old to train from. Default: none; with `kind: tokens`, `drift` is 0, or `maxDrift` with `mode: asynchronous`.",
    ),
  mode: z
    .enum(["synchronous", "asynchronous"])
    .default("synchronous")
    .describe("`asynchronous`: a window collects while the window before it trains."),
  maxDrift: positive
    .default(1)
    .describe("Number of windows that the policy which collects may be behind, with `mode: asynchronous`."),
  seed: z.number().int().min(0).default(0).describe("Seed of all draws of the run."),
});

export type LoopConfig = Omit<z.output<typeof configSchema>, "learner" | "learners"> & {
  /** Options that name the run in the commands of an error: `--config FILE`, and `--book` if the user gave it. */
  readonly options: string;
  /** At least one learner, no two of a kind; empty if a model is trained on tokens. */
  readonly learners: readonly LearnerConfig[];
  /** Set only for a world of kind tokens. */
  readonly tokenLearner?: TokenLearnerConfig;
  /** Digest of the configuration without the place of the run, the number of workers, the number of windows, and the
   *  settings that fit a token window to its machine. A run may be moved, and may be continued. */
  readonly digest: Digest;
  /** True if a run with that digest has this configuration. The digests of earlier versions covered `workers` and the
   *  settings of the machine. */
  readonly isDigest: (digest: Digest) => boolean;
  /** Settings that the digest covers. Those of the machine have their defaults. */
  readonly settings: Readonly<Record<string, unknown>>;
};

const OF_A_GATEWAY = {
  key: "upstreams",
  problem:
    "this is the file of a gateway, not of a loop. Start the gateway with `rollbook gateway --config`, or name the loop's file",
};

export function parseLoopConfig(text: string, where: string, folder: string): LoopConfig {
  const value = readYaml(text, (what) => bad(where, what)) ?? {};
  const result = configSchema.safeParse(value);
  if (!result.success)
    throw bad(where, configProblem(configSchema, result.error.issues, value, OF_A_GATEWAY));
  const config = withTokenDefaults(result.data);
  parseId(config.run, `${where}: run`);
  const problem = idleIn(config, value) ?? contradictionIn(config);
  if (problem !== undefined) throw bad(where, problem);
  const { book: _, windows: __, queue, gateways, gatewayTokenEnv, ...stated } = config;
  const covered = withTokenMachine(stated);
  const digestOf = (each: object, workers: number) =>
    digestJson("rollbook.loop-config.v1", { ...each, workers });
  // The digest always uses the default number of workers, so configurations that name none keep their digest.
  const digest = digestOf(covered, DEFAULT_WORKERS);
  let earlier: ReadonlySet<Digest> | undefined;
  const isDigest = (other: Digest) => {
    if (other === digest) return true;
    earlier ??= new Set(EVERY_NUMBER.map((workers) => digestOf(stated, workers)));
    return earlier.has(other);
  };
  const { workers: ___, ...settings } = covered;
  return { ...withPaths(config, folder), options: `--config ${where}`, digest, isDigest, settings };
}

/** Replaces the settings that fit a token window to its machine by their defaults. A run that ran out of memory, or that
 *  moved to another machine, continues with other values of them. */
function withTokenMachine<T extends Pick<z.output<typeof configSchema>, "world" | "learner">>(config: T): T {
  const { world, learner } = config;
  if (world.kind !== "tokens" || learner === undefined || !isTokenLearner(learner)) return config;
  return {
    ...config,
    world: { ...world, ...TOKEN_MACHINE.world },
    learner: { ...learner, ...TOKEN_MACHINE.learner },
  };
}

/** Settings of windows that choose among candidates. A token window has neither candidates nor a split of its log. */
const ROUTER_KEYS = [
  ...["behaviour", "exploration", "table", "floor", "split", "gate", "data", "replay", "learners"],
  "discount",
] as const;

/** Settings of the place where the rollouts of an agent run. */
const PLACE_KEYS = ["queue", "gateways", "gatewayTokenEnv"] as const;

/** A token window learns from its own rollouts: older ones are too stale to be corrected. */
function withTokenDefaults(config: z.output<typeof configSchema>): z.output<typeof configSchema> {
  return config.world.kind === "tokens" ? { ...config, data: "window" } : config;
}

/** Finds a setting that this kind of world does not read. */
function idleIn({ world, learner }: z.output<typeof configSchema>, value: unknown): string | undefined {
  const isTokens = world.kind === "tokens";
  const elsewhere =
    world.kind === "agent" ? undefined : PLACE_KEYS.find((key) => Object.hasOwn(value as object, key));
  if (elsewhere !== undefined)
    return `${elsewhere} has no effect with world.kind: ${world.kind}, which runs in the process of the loop. Remove it, or use world.kind: agent`;
  const idle = isTokens ? ROUTER_KEYS.find((key) => Object.hasOwn(value as object, key)) : undefined;
  if (idle !== undefined) return `${idle} has no effect with world.kind: tokens. Remove it`;
  if (learner === undefined || isTokens === isTokenLearner(learner)) return undefined;
  return isTokens
    ? `learner.kind: ${learner.kind} learns from choices. With world.kind: tokens use grpo, rloo, sft or frozen`
    : `learner.kind: ${learner.kind} learns from tokens. Use it with world.kind: tokens`;
}

/** Finds contradictions between several fields. */
function contradictionIn({
  rollouts,
  samples,
  split,
  mode,
  data,
  gate,
  learner,
  learners,
  ...rest
}: z.output<typeof configSchema>) {
  if ((learner === undefined) === (learners === undefined))
    return learner === undefined
      ? "learner is missing. Name one, or several under learners"
      : "learner and learners exclude each other. Remove one of them";
  const kinds = (learners ?? []).map(({ kind }) => kind);
  const twice = kinds.find((kind, i) => kinds.indexOf(kind) !== i);
  if (twice !== undefined) return `learners: ${twice} appears twice. Name each kind once`;
  if (rest.workers === 0 && rest.queue === undefined)
    return "workers: 0 runs nothing. Name a queue that other workers join, or raise it";
  if (rest.queue !== undefined && rest.gateways === undefined)
    return "queue needs gateways: workers on other machines cannot reach the gateway that the loop opens. Name those of the cluster";
  if (rest.gatewayTokenEnv !== undefined && rest.gateways === undefined)
    return "gatewayTokenEnv has no effect without gateways. Remove it";
  if (rollouts % samples !== 0)
    return `rollouts: ${rollouts} is not a multiple of samples, ${samples}. Every task of a window gets the same number`;
  if (gate.epsilonQuality >= 1 && rest.world.kind !== "agent")
    return `gate.epsilonQuality: ${gate.epsilonQuality} is not less than the range of the reward (0 … 1), so any policy would pass. Choose the loss that you accept, such as 0.05`;
  const sum = split.shares.reduce((total, each) => total + each, 0);
  if (Math.abs(sum - 1) > 1e-9) return `split.shares: they add up to ${sum}, not to 1`;
  if (split.shares[0] === 0 || split.shares[2] === 0)
    return "split.shares: train and judge need a share above 0. A policy is never judged by rows it has learned from";
  if (mode === "synchronous" && rest.maxDrift !== 1)
    return "maxDrift has no effect with mode: synchronous. Remove it, or use mode: asynchronous";
  if (typeof rest.floor === "object" && split.shares[1] === 0)
    return "floor.risk needs a calibration share in split.shares";
  if (gate.method === "student-t" && (gate.propensityFloor ?? gate.costRange) !== undefined)
    return "gate.propensityFloor and gate.costRange have no effect with method: student-t. Remove them";
  const drift = rest.world.kind === "tokens" && mode === "asynchronous" ? rest.freshness?.drift : undefined;
  if (drift !== undefined && drift < rest.maxDrift)
    return `freshness.drift: ${drift} is below maxDrift, ${rest.maxDrift}. A window that far behind would have no row: raise the one or lower the other`;
  if (data === "window" && rest.freshness !== undefined && rest.world.kind !== "tokens")
    return "freshness has no effect with data: window, whose rollouts are all of the newest policy. Remove it";
  return undefined;
}

/** Paths are relative to the file that names them. */
function withPaths(
  { learner, learners, ...config }: z.output<typeof configSchema>,
  folder: string,
): Omit<LoopConfig, "options" | "digest" | "isDigest" | "settings"> {
  const at = (name: string) => (isAbsolute(name) || /^(https?|s3):/.test(name) ? name : join(folder, name));
  const { book, table, world, replay } = config;
  return {
    ...config,
    ...(book === undefined ? {} : { book: at(book) }),
    ...(table === undefined ? {} : { table: at(table) }),
    ...(replay === undefined ? {} : { replay: at(replay) }),
    world: worldWithPaths(world, at),
    ...(learner !== undefined && isTokenLearner(learner)
      ? { tokenLearner: learner, learners: [] }
      : {
          learners: (learners ?? [learner!]).map((each) =>
            "features" in each && each.features !== undefined
              ? { ...each, features: at(each.features) }
              : each,
          ),
        }),
  };
}

function worldWithPaths(
  world: z.output<typeof configSchema>["world"],
  at: (name: string) => string,
): z.output<typeof configSchema>["world"] {
  const tasks = at(world.tasks);
  switch (world.kind) {
    case "agent":
      return { ...world, tasks, agent: at(world.agent), gateway: at(world.gateway) };
    case "simulator":
      return { ...world, tasks, ...(world.models === undefined ? {} : { models: at(world.models) }) };
    case "tokens": {
      const { heldOut, agent, python } = world;
      return {
        ...{ ...world, tasks, model: at(world.model), python: python.includes("/") ? at(python) : python },
        ...(agent === undefined ? {} : { agent: at(agent) }),
        ...(heldOut === undefined ? {} : { heldOut: { ...heldOut, tasks: at(heldOut.tasks) } }),
      };
    }
    default:
      return world satisfies never;
  }
}

function bad(where: string, problem: string): RollbookError {
  return new RollbookError(
    "bad-config",
    { where, problem },
    `${where}: ${withRemedy(problem, "See docs/loop.md.")}`,
  );
}
