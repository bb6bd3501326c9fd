/** Reads the `router:` configuration strictly, so that a typo is refused and never ignored.
 *  In: the value of the file, and the environment. Out: a checked configuration. Opens no file: `openRouter` does. */
import * as z from "zod";
import { given, isObject, parseId, RollbookError, withRemedy } from "../base/index.ts";
import { configProblem } from "../contract/index.ts";
import { type Constraints, readYaml } from "../policy/index.ts";

const share = z.number().min(0).max(1);
const amount = z.number().min(0);
const positive = z.number().int().min(1);
const path = z.string().min(1);

/** Declared facts of a candidate. Policies, constraints and strategies read them. */
const candidate = z.strictObject({
  quality: z
    .optional(z.number())
    .describe("Expected quality, for `strategy: softmax` and for the order of the default table."),
  callPrice: z
    .optional(amount)
    .describe("US dollars for one call. Constraints use `price` if this is not given."),
  price: z
    .optional(
      z.strictObject({
        prompt: amount.describe("Price of the request."),
        completion: amount.describe("Price of the reply."),
      }),
    )
    .describe("US dollars per million tokens."),
  latencyMs: z.optional(amount).describe("Milliseconds that a call takes."),
  contextTokens: z.optional(positive).describe("Tokens of the request and its reply together."),
});

/** Path of a YAML file, or the table itself; `parseStaticTable` checks it. */
const table = z.union([path, z.record(z.string(), z.json())]);

const constraints = z.strictObject({
  maxPriceUsdPerCall: z.optional(amount).describe("Highest price of one call, in US dollars."),
  maxLatencyMs: z.optional(amount).describe("Longest latency of one call, in milliseconds."),
  fitContext: z
    .optional(z.boolean())
    .describe("The request and the longest reply that it allows must fit the candidate's context."),
  onNone: z
    .optional(z.enum(["cheapest", "refuse"]))
    .describe(
      "The choice when no candidate is left. `cheapest`: the cheapest candidate that fits the context; `refuse`: the request is refused (default: cheapest).",
    ),
});

export const routerSchema = z.strictObject({
  aliases: z
    .array(z.string().min(1))
    .min(1)
    .default(["auto"])
    .describe("Model names that clients give to leave the choice to the router."),
  family: z
    .string()
    .default("router")
    .describe("The policy family that decisions are logged under, and that a checkpoint must have."),
  checkpoint: z
    .optional(path)
    .describe(
      "A checkpoint's folder, or `released`: the newest checkpoint that a gate verdict of the book releases for this router.",
    ),
  enabled: z.boolean().default(true).describe("False: the learned policy is not used."),
  allowUngated: z.boolean().default(false).describe("Serves a checkpoint that no gate verdict releases."),
  verdict: z.optional(path).describe("A file that `rollbook gate --out` wrote, for a router without a book."),
  trust: z
    .enum(["any", "signed"])
    .default("any")
    .describe(
      "`signed`: a trusted key must have signed the verdicts that release a checkpoint, and the routers that rollouts name.",
    ),
  features: z
    .optional(path)
    .describe("A feature spec; a checkpoint that was trained on another spec is refused."),
  table: z
    .optional(table)
    .describe(
      "A static table, or the path of its YAML file. Default: the table of the checkpoint; else the candidate with the highest `quality` − `costWeight` · `callPrice`, or the first of the list if not every candidate declares a `quality`.",
    ),
  floor: z
    .optional(share)
    .describe(
      "Confidence below which the table decides (default: the floor of the gate verdict, else of the checkpoint, else 0).",
    ),
  exploration: z
    .optional(share)
    .describe(
      "Share of uniformly random choices (default: the share of the gate verdict, else 0.02, or 0.1 for epsilon-greedy).",
    ),
  strategy: z
    .enum(["table", "epsilon-greedy", "softmax"])
    .default("table")
    .describe("The rule that decides without a checkpoint."),
  temperature: z
    .number()
    .positive()
    .default(0.1)
    .describe("For `strategy: softmax`: P ∝ exp((quality − costWeight · callPrice) / temperature)."),
  costWeight: amount
    .default(1)
    .describe("Quality that one US dollar is worth, for `strategy: softmax` and for the default table."),
  embeddings: z
    .optional(
      z.strictObject({
        url: z.string().min(1).describe("Address of the endpoint, with or without `/embeddings` at the end."),
      }),
    )
    .describe(
      "An endpoint of the OpenAI `/v1/embeddings` shape, for a checkpoint trained with `--embeddings`. The API key is read from ROLLBOOK_EMBEDDINGS_KEY.",
    ),
  seed: z
    .number()
    .int()
    .min(0)
    .default(0)
    .describe("Seed of the draws; a draw follows from the seed and the name of the call."),
  constraints: z.optional(constraints).describe("A candidate that breaks a constraint is not chosen."),
  candidates: z.record(z.string().min(1), candidate).default({}).describe("Facts about the models, by name."),
  shadow: z
    .optional(
      z.strictObject({
        checkpoint: path.describe("Folder of its checkpoint."),
        table: z.optional(table).describe("Its static table."),
        floor: z.optional(share).describe("Its confidence floor."),
        exploration: z.optional(share).describe("Its share of uniformly random choices."),
      }),
    )
    .describe("A second policy that decides on every call, is logged and does not act."),
  reload: z
    .optional(z.strictObject({ everyMs: positive.default(1000).describe("Milliseconds between two looks.") }))
    .describe("How often to look for a new checkpoint or release."),
  rollback: z
    .optional(
      z.strictObject({
        alpha: z
          .number()
          .gt(0)
          .lt(0.5)
          .default(0.05)
          .describe("Probability of a false rollback, over the whole life of a revision."),
        margin: amount.default(0).describe("Mean loss per outcome that is tolerated."),
        range: z
          .strictObject({
            low: z.number().describe("The smallest outcome."),
            high: z.number().describe("The largest outcome."),
          })
          .refine(({ low, high }) => low < high, "is empty: low must be below high")
          .default({ low: 0, high: 1 })
          .describe("Range of outcomes; an outcome outside counts as the nearest end."),
        feedback: z
          .optional(z.string())
          .describe("The late feedback that gives outcomes (default: recorded rewards)."),
        settleMs: z
          .number()
          .int()
          .min(0)
          .default(300_000)
          .describe(
            "Milliseconds that an outcome may take after the end of its rollout: the rollout counts when its end is older than this.",
          ),
        everyMs: positive.default(10_000).describe("Milliseconds between two looks."),
        holdback: share
          .default(0)
          .describe("Share of rollouts that the previous router keeps while a new one is watched."),
      }),
    )
    .describe("Returns to the previous router if outcomes show harm (default: no rollback)."),
});

export type RouterConfig = z.output<typeof routerSchema>;
export type RouterConfigInput = z.input<typeof routerSchema>;
export type DeclaredFacts = z.output<typeof candidate>;

export const DEFAULT_EXPLORATION = 0.02;
export const EPSILON_EXPLORATION = 0.1;

/** `env`: its variables override the file. */
export function checkRouterConfig(
  value: unknown,
  { where = "router", env = {} }: { where?: string; env?: Readonly<Record<string, string | undefined>> } = {},
): RouterConfig {
  const merged = withEnvironment(value ?? {}, env);
  const result = routerSchema.safeParse(merged);
  if (!result.success) {
    const { issues } = result.error;
    for (const issue of issues) {
      const name = VARIABLES[issue.path.join(".")];
      if (name !== undefined && (env[name] ?? "") !== "")
        throw badVariable(name, configProblem(routerSchema, [issue], merged));
    }
    throw badConfig(where, configProblem(routerSchema, issues, merged));
  }
  const config = result.data;
  parseId(config.family, `${where}: family`);
  const fault = contradiction(config);
  if (fault !== undefined) throw badConfig(where, fault);
  return config;
}

/** Reads a YAML file with a `router:` section, alone or beside others, or with that section's settings at its top. */
export function parseRouterConfig(
  text: string,
  where: string,
  env: Readonly<Record<string, string | undefined>> = {},
): RouterConfig {
  const value = readYaml(text, (what) => badConfig(where, what));
  const isSection = isObject(value) && "router" in value;
  return checkRouterConfig(isSection ? value.router : value, { where, env });
}

/** Only stated constraints are kept, because the router's digest covers them. */
export function constraintsOf({ constraints: stated }: RouterConfig): Constraints | undefined {
  if (stated === undefined) return undefined;
  const entries = Object.entries(stated).filter(([, value]) => value !== undefined);
  return entries.length === 0 ? undefined : (Object.fromEntries(entries) as Constraints);
}

function contradiction(config: RouterConfig): string | undefined {
  const { checkpoint, enabled, strategy, rollback, candidates, trust, verdict } = config;
  const { constraints: limits = {}, shadow } = config;
  if (shadow?.checkpoint === "released")
    return "shadow.checkpoint is `released`, which works only for router.checkpoint. Name the folder of a checkpoint";
  if (trust === "signed" && verdict !== undefined)
    return "trust: signed and a verdict file are both set, and a file carries no signature. Remove one";
  if (checkpoint !== undefined && enabled && strategy !== "table")
    return `checkpoint and strategy ${strategy} are both set. Remove one, or set enabled: false until the policy is to decide; below its floor a checkpoint falls back to the table`;
  if (strategy === "softmax") {
    const bare = Object.entries(candidates).find(([, { quality }]) => quality === undefined);
    if (bare !== undefined)
      return `strategy softmax needs a quality for every candidate; ${bare[0]} has none`;
    if (Object.keys(candidates).length === 0) return "strategy softmax needs candidates, each with a quality";
  }
  if (rollback !== undefined && checkpoint === undefined)
    return "rollback is set, and there is no checkpoint to take back. Name one, or remove rollback";
  for (const fact of ["latencyMs", "contextTokens"] as const) {
    const limited = fact === "latencyMs" ? limits.maxLatencyMs !== undefined : limits.fitContext === true;
    if (!limited) continue;
    const all = Object.entries(candidates);
    if (all.length === 0) return `a constraint limits ${fact}, and no candidate declares it`;
    const bare = all.find(([, facts]) => facts[fact] === undefined);
    // Prices may also come from the gateway's models; latency and context length come only from this section.
    if (bare !== undefined)
      return `candidates.${bare[0]} has no ${fact}, and a constraint limits it: the candidate could never be chosen`;
  }
  return undefined;
}

/** Variables with a range, by the setting that they override. */
const VARIABLES: Readonly<Record<string, string>> = {
  floor: "ROLLBOOK_FLOOR",
  exploration: "ROLLBOOK_EXPLORATION",
  "constraints.maxPriceUsdPerCall": "ROLLBOOK_MAX_PRICE_USD",
  "constraints.maxLatencyMs": "ROLLBOOK_MAX_LATENCY_MS",
};

type Environment = Readonly<Record<string, string | undefined>>;

/** ROLLBOOK_POLICY=1 enables a checkpoint, =0 disables it; ROLLBOOK_CHECKPOINT names it. Without ROLLBOOK_POLICY=1 the
 *  environment's checkpoint is not used: it is kept, disabled, if the file names none, so that the log can say so. A
 *  checkpoint that the environment enables replaces the strategy of the file. */
function withEnvironment(value: object, env: Environment): object {
  const read = (name: string) => (env[name] === "" ? undefined : env[name]);
  const checkpoint = read("ROLLBOOK_CHECKPOINT");
  const enabled = flag("ROLLBOOK_POLICY", read("ROLLBOOK_POLICY"));
  const allowUngated = flag("ROLLBOOK_ALLOW_UNGATED", read("ROLLBOOK_ALLOW_UNGATED"));
  const stated = value as { constraints?: object; checkpoint?: unknown };
  const isIdle = checkpoint !== undefined && enabled !== true && stated.checkpoint === undefined;
  const isNamed = checkpoint !== undefined || stated.checkpoint !== undefined;
  const limits = {
    ...numberOf("maxPriceUsdPerCall", "ROLLBOOK_MAX_PRICE_USD", read("ROLLBOOK_MAX_PRICE_USD")),
    ...numberOf("maxLatencyMs", "ROLLBOOK_MAX_LATENCY_MS", read("ROLLBOOK_MAX_LATENCY_MS")),
  };
  return {
    ...stated,
    ...(isIdle ? { checkpoint, enabled: false } : {}),
    ...(enabled === true && isNamed ? { ...given({ checkpoint }), strategy: "table" } : {}),
    ...given({ enabled, allowUngated }),
    ...(read("ROLLBOOK_TABLE") === undefined ? {} : { table: read("ROLLBOOK_TABLE") }),
    ...numberOf("floor", "ROLLBOOK_FLOOR", read("ROLLBOOK_FLOOR")),
    ...numberOf("exploration", "ROLLBOOK_EXPLORATION", read("ROLLBOOK_EXPLORATION")),
    ...(Object.keys(limits).length === 0 ? {} : { constraints: { ...stated.constraints, ...limits } }),
  };
}

function flag(name: string, text: string | undefined): boolean | undefined {
  if (text === undefined) return undefined;
  if (text === "1" || text === "0") return text === "1";
  throw badVariable(name, `it is ${JSON.stringify(text)}, not 1 or 0`);
}

function numberOf(key: string, name: string, text: string | undefined): Record<string, number> {
  if (text === undefined) return {};
  const value = Number(text);
  if (text.trim() !== "" && Number.isFinite(value)) return { [key]: value };
  throw badVariable(name, `it is ${JSON.stringify(text)}, not a number`);
}

function badVariable(name: string, problem: string): RollbookError {
  const remedy = "Correct the environment variable; docs/reference/serve.md lists the variables.";
  return new RollbookError("bad-config", { where: name }, `${name}: ${withRemedy(problem, remedy)}`);
}

function badConfig(where: string, problem: string): RollbookError {
  return new RollbookError(
    "bad-config",
    { where },
    `${where}: ${withRemedy(problem, "Correct the configuration; docs/reference/settings.md lists the settings.")}`,
  );
}
