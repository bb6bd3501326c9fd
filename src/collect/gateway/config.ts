/** The gateway's configuration: a YAML file, read strictly, so that a typo is refused and never ignored.
 *  In: text and environment. Out: a checked configuration. Keys stand in the environment only; the file names them. */
import { z } from "zod";
import { type Digest, parseId, RollbookError } from "../../base/index.ts";
import { configProblem } from "../../contract/index.ts";
import { readYaml } from "../../policy/index.ts";

const name = z.string().regex(/^[A-Za-z0-9_][A-Za-z0-9_.:+/-]{0,255}$/, "is not a name");
const variable = z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, "is not the name of an environment variable");
const digest = z.string().regex(/^sha256:[0-9a-f]{64}$/, "is not a digest") as unknown as z.ZodType<Digest>;
const positive = z.number().int().min(1);
/** US dollars: a cost stays a finite number, however many tokens an upstream claims. */
const amount = z.number().min(0).max(1e9);
/** Past it a body could not be a text in one piece. */
const bodyBytes = positive.max(256 * 1024 * 1024);

const upstream = z.strictObject({
  /** `http://host:8000/v1`; without a path, `/v1` is implied. `local:<name>`: a function of the program that opens the gateway. */
  baseUrl: z.url({ protocol: /^(https?|local)$/ }),
  /** The environment variable that holds the key. Without one, none is sent. */
  keyEnv: z.optional(variable),
  /** How the key travels. */
  auth: z.enum(["bearer", "x-api-key"]).default("bearer"),
  headers: z.record(z.string(), z.string()).default({}),
  /** Until the first byte, and between two. */
  timeoutMs: positive.default(600_000),
  connectTimeoutMs: positive.default(10_000),
  connections: positive.max(4096).default(256),
  /** Further attempts after 429, 5xx or a failed connection, before the first byte. */
  retries: z.number().int().min(0).max(10).default(2),
  retryBaseMs: positive.default(250),
  retryMaxMs: positive.default(10_000),
  /** So many failures in a row open the breaker; after the pause one request tries again. */
  breaker: z.strictObject({ failures: positive.default(8), pauseMs: positive.default(15_000) }).prefault({}),
});

const model = z.strictObject({
  upstream: name,
  /** What the upstream calls it; the name itself unless told. */
  model: z.optional(z.string().min(1).max(512)),
  /** US dollars per million tokens. */
  price: z.optional(z.strictObject({ prompt: amount, completion: amount, cached: z.optional(amount) })),
  /** Asks the upstream for exact tokens. `vllm` and `sglang` know the fields; `fields` adds any others. */
  capture: z.optional(
    z.strictObject({
      tokens: z.optional(z.enum(["vllm", "sglang"])),
      fields: z.record(z.string(), z.json()).default({}),
    }),
  ),
  /** What the upstream's logprobs are of; without it tokens are not kept, because nobody could use them. */
  logprobKind: z.optional(z.enum(["sampling", "model"])),
  tokenizer: z.optional(digest),
  /** The policy that answers. Without it the model is known by its name alone. */
  family: z.optional(name),
  revision: z.optional(z.strictObject({ id: name, digest })),
});

const configSchema = z.strictObject({
  listen: z
    .strictObject({
      host: z.string().default("127.0.0.1"),
      port: z.number().int().min(0).max(65_535).default(8790),
      /** Names, without port, by which clients reach it beside the address: its name in DNS, or a proxy's. */
      names: z.array(z.string().min(1).max(253)).default([]),
    })
    .prefault({}),
  /** Environment variables that hold tokens. Required unless the gateway listens on loopback only. */
  tokensEnv: z.array(variable).default([]),
  record: z.enum(["durable", "async"]).default("durable"),
  limits: z
    .strictObject({
      requestBytes: bodyBytes.default(64 * 1024 * 1024),
      responseBytes: bodyBytes.default(256 * 1024 * 1024),
      /** Requests of calls in progress hold so many bytes together, and their replies as many. */
      inFlightBytes: positive.default(512 * 1024 * 1024),
      /** From the request to the last byte of the reply; a reply that goes on longer is cut. */
      callMs: positive.default(60 * 60 * 1000),
      /** What the calls of one rollout take in the journal, before no more of them are answered. */
      rolloutBytes: positive.default(1024 ** 3),
      /** Time to read the calls of a rollout that is sealed; those left then are kept as bytes, unread. */
      sealMs: positive.default(60_000),
      headerBytes: positive.default(32 * 1024),
      openRollouts: positive.default(100_000),
      /** While so many calls without a rollout are in progress or not sealed yet, more of them are refused. */
      sealBacklog: positive.default(50_000),
    })
    .prefault({}),
  rollouts: z
    .strictObject({
      /** A rollout without a call for so long is sealed. */
      idleMs: positive.default(15 * 60 * 1000),
      maxTurns: z.optional(positive),
      budgetUsd: z.optional(amount),
      environment: z.string().default("gateway@1"),
      dataSource: z.enum(["real", "synthetic"]).default("real"),
    })
    .prefault({}),
  worker: name.default("gateway"),
  upstreams: z.record(name, upstream),
  models: z.record(name, model).default({}),
  /** An alias, and the models a router chooses among. */
  routes: z.record(name, z.array(name).min(1)).default({}),
  /** Which policy answers to an alias; serve/config.ts says what stands here, and checks it. */
  router: z.optional(z.record(z.string(), z.json())),
  /** Where models go that are not listed. */
  defaultUpstream: z.optional(name),
  /** Regular expressions: what they match is not recorded. */
  redact: z.array(z.string().max(1024)).default([]),
});

export type GatewayConfig = z.output<typeof configSchema>;
export type UpstreamConfig = GatewayConfig["upstreams"][string];
export type ModelConfig = GatewayConfig["models"][string];

export function parseGatewayConfig(text: string, where = "gateway.yaml"): GatewayConfig {
  return checkGatewayConfig(readYaml(text, (what) => bad(where, what)) ?? {}, where);
}

export function checkGatewayConfig(value: unknown, where = "configuration"): GatewayConfig {
  const result = configSchema.safeParse(value);
  if (!result.success) throw bad(where, configProblem(configSchema, result.error.issues, value));
  checkNames(result.data, where);
  return result.data;
}

/** What local servers are given for a key that they do not check: no secrets, and not looked for. */
export const PLACEHOLDER_KEYS: ReadonlySet<string> = new Set([
  ...[
    "EMPTY",
    "empty",
    "none",
    "None",
    "null",
    "dummy",
    "test",
    "local",
    "key",
    "token",
    "x",
    "-",
    "sk-",
    "unused",
  ],
  ...["ollama", "vllm", "sglang", "llama", "lmstudio", "lm-studio", "no-key", "nokey", "fake", "fake-key"],
  ...[
    "not-needed",
    "not-used",
    "no-key-required",
    "sk-no-key-required",
    "placeholder",
    "dummy-key",
    "test-key",
  ],
]);
/** A shorter key would be found in ordinary words, and so could not be kept out of the record. */
const MIN_KEY = 8;

/** The values of the named variables; a variable that is not set is an error, not an open door. Keys that are
 *  placeholders are given out, and are no secrets. */
export function readSecrets(
  config: GatewayConfig,
  env: Readonly<Record<string, string | undefined>>,
): { tokens: string[]; keys: Map<string, string>; secrets: string[] } {
  const secrets: string[] = [];
  const need = (variableName: string, what: string, placeholders: ReadonlySet<string>): string => {
    const value = env[variableName];
    if (value !== undefined && placeholders.has(value)) return value;
    if (value !== undefined && value !== "") {
      if (value.length < MIN_KEY) throw tooShort(variableName, what);
      secrets.push(value);
      return value;
    }
    throw new RollbookError(
      "no-key",
      { variable: variableName },
      `${what} is to be in the environment variable ${variableName}, which is not set. Set it or remove it from the configuration.`,
    );
  };
  const keys = new Map<string, string>();
  for (const [upstreamName, { keyEnv }] of Object.entries(config.upstreams))
    if (keyEnv !== undefined)
      keys.set(upstreamName, need(keyEnv, `the key of upstream ${upstreamName}`, PLACEHOLDER_KEYS));
  // A token that everybody knows would be an open door.
  const tokens = config.tokensEnv.map((each) => need(each, "a token of the gateway", NONE));
  return { tokens, keys, secrets };
}

const NONE: ReadonlySet<string> = new Set();

function tooShort(variableName: string, what: string): RollbookError {
  return new RollbookError(
    "short-key",
    { variable: variableName, least: MIN_KEY },
    `${what}, in the environment variable ${variableName}, has fewer than ${MIN_KEY} characters and could not be kept out of the record. Use a longer one; for a server that checks no key, EMPTY.`,
  );
}

function checkNames(config: GatewayConfig, where: string): void {
  const { upstreams, models, routes, defaultUpstream } = config;
  const need = (known: object, wanted: string, place: string) => {
    if (!Object.hasOwn(known, wanted))
      throw bad(
        where,
        `${place} names ${wanted}, which is not there. Known: ${Object.keys(known).join(", ")}`,
      );
  };
  if (defaultUpstream !== undefined) need(upstreams, defaultUpstream, "defaultUpstream");
  for (const [each, { upstream: wanted, capture, logprobKind, family }] of Object.entries(models)) {
    need(upstreams, wanted, `models.${each}.upstream`);
    if (capture?.tokens !== undefined && logprobKind === undefined)
      throw bad(where, `models.${each} captures tokens but does not say logprobKind: sampling or model`);
    if (family !== undefined) parseId(family, `models.${each}.family`);
  }
  for (const [alias, candidates] of Object.entries(routes)) {
    if (Object.hasOwn(models, alias)) throw bad(where, `${alias} is both a model and a route`);
    for (const candidate of candidates) need(models, candidate, `routes.${alias}`);
  }
  for (const pattern of config.redact) compile(pattern, where);
  parseId(config.worker, "worker");
}

export function compile(pattern: string, where = "configuration"): RegExp {
  try {
    return new RegExp(pattern, "u");
  } catch (cause) {
    throw bad(where, `redact: ${JSON.stringify(pattern)} is not a regular expression`, cause);
  }
}

function bad(where: string, problem: string, cause?: unknown): RollbookError {
  return new RollbookError(
    "bad-config",
    { where },
    `${where}: ${problem}${problem.endsWith("?") ? "" : "."} Correct the configuration.`,
    cause === undefined ? undefined : { cause },
  );
}
