/** The gateway's configuration: a YAML file, read strictly. A typo is refused, not ignored. In: text and
 *  environment. Out: a checked configuration. Keys are only in the environment; the file names their variables. */
import * as z from "zod";
import { type Digest, parseId, RollbookError, withRemedy } from "../../base/index.ts";
import { configProblem } from "../../contract/index.ts";
import { readYaml } from "../../policy/index.ts";
import { mixedRoute, VENDORS } from "./dialects/index.ts";

const name = z.string().regex(/^[A-Za-z0-9_][A-Za-z0-9_.:+/-]{0,255}$/, "is not a name");
const variable = z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, "is not the name of an environment variable");
const digest = z.string().regex(/^sha256:[0-9a-f]{64}$/, "is not a digest") as unknown as z.ZodType<Digest>;
const positive = z.number().int().min(1);
/** US dollars. The bound keeps a cost finite for any token count that an upstream reports. */
const amount = z.number().min(0).max(1e9);
/** A larger body would not fit into one string. */
const bodyBytes = positive.max(256 * 1024 * 1024);

const upstream = z.strictObject({
  baseUrl: z
    .url({ protocol: /^(https?|local)$/ })
    .describe(
      "`http://host:8000/v1`; without a path, `/v1` is implied. `local:<name>`: a function of the program that opens the gateway.",
    ),
  keyEnv: z
    .optional(variable)
    .describe("The environment variable that holds the key. Without this setting, no key is sent."),
  auth: z.enum(["bearer", "x-api-key"]).default("bearer").describe("The header that carries the key."),
  headers: z.record(z.string(), z.string()).default({}).describe("Further headers of every request."),
  dialect: z
    .optional(z.enum([...VENDORS, "both"]))
    .describe(
      "The wire formats that it speaks (default: `anthropic` with `auth: x-api-key` or at anthropic.com, else `openai`). A route takes models of one dialect. If set, requests in the other dialect are refused.",
    ),
  timeoutMs: positive
    .default(600_000)
    .describe("Milliseconds to wait for the first byte, and between two parts of a reply."),
  connectTimeoutMs: positive.default(10_000).describe("Milliseconds to open a connection."),
  connections: positive.max(4096).default(256).describe("Most connections at the same time."),
  retries: z
    .number()
    .int()
    .min(0)
    .max(10)
    .default(2)
    .describe("Further attempts after 408, 429, 5xx or a failed connection, before the first byte."),
  retryBaseMs: positive
    .default(250)
    .describe("Milliseconds before the first retry; each further pause is twice as long."),
  retryMaxMs: positive.default(10_000).describe("Longest pause before a retry, in milliseconds."),
  breaker: z
    .strictObject({
      failures: positive
        .default(8)
        .describe("Failed calls in a row that open the breaker; repetitions of one request count once."),
      pauseMs: positive.default(15_000).describe("Milliseconds until one request tries again."),
    })
    .prefault({})
    .describe("Pauses an upstream after repeated failures."),
});

const model = z.strictObject({
  upstream: name.describe("The upstream that serves the model, by its name under `upstreams`."),
  model: z
    .optional(z.string().min(1).max(512))
    .describe("Name of the model at the upstream (default: the name of this entry)."),
  price: z
    .optional(
      z.strictObject({
        prompt: amount.describe("Price of the request."),
        completion: amount.describe("Price of the reply."),
        cached: z
          .optional(amount)
          .describe("Price of cached parts of the request (default: the price of `prompt`)."),
      }),
    )
    .describe("US dollars per million tokens."),
  capture: z
    .optional(
      z.strictObject({
        tokens: z.optional(z.enum(["vllm", "sglang"])).describe("The kind of server."),
        fields: z.record(z.string(), z.json()).default({}).describe("Further fields of the request."),
      }),
    )
    .describe("Asks the upstream for exact tokens."),
  logprobKind: z
    .optional(z.enum(["sampling", "model"]))
    .describe(
      "The distribution of the log-probabilities. `sampling`: after temperature and filters; `model`: of the model alone. Without this setting tokens are not kept, because no trainer could use them.",
    ),
  tokenizer: z.optional(digest).describe("Digest of the tokenizer. Batches do not mix tokenizers."),
  family: z
    .optional(name)
    .describe("The policy family that answers. Without this setting the model is known by its name alone."),
  revision: z
    .optional(
      z.strictObject({
        id: name.describe("Id of the revision."),
        digest: digest.describe("Digest of the record of the revision."),
      }),
    )
    .describe("The revision of that family."),
});

export const gatewaySchema = z.strictObject({
  listen: z
    .strictObject({
      host: z.string().default("127.0.0.1").describe("The address to listen on."),
      port: z
        .number()
        .int()
        .min(0)
        .max(65_535)
        .default(8790)
        .describe("The port to listen on; 0 takes a free port."),
      names: z
        .array(z.string().min(1).max(253))
        .default([])
        .describe(
          "Further host names, without port, by which clients reach the gateway: its name in DNS, or the name of a proxy.",
        ),
    })
    .prefault({})
    .describe("Where clients reach the gateway."),
  tokensEnv: z
    .array(variable)
    .default([])
    .describe(
      "Environment variables that hold access tokens. Required unless the gateway listens on loopback only.",
    ),
  record: z
    .enum(["durable", "async"])
    .default("durable")
    .describe(
      "`durable`: the record of a reply is on disk before the gateway sends its last byte or, of a stream, its last event. `async`: a crash may lose the last calls.",
    ),
  limits: z
    .strictObject({
      requestBytes: bodyBytes.default(64 * 1024 * 1024).describe("Most bytes of a request."),
      responseBytes: bodyBytes
        .default(256 * 1024 * 1024)
        .describe("Most bytes of a reply; a longer reply is cut off, and only its digest is kept."),
      inFlightBytes: positive
        .default(512 * 1024 * 1024)
        .describe(
          "Most bytes of all requests in progress together, and of all replies that are not recorded yet.",
        ),
      callMs: positive
        .default(60 * 60 * 1000)
        .describe("Milliseconds from the request to the last byte; a longer reply is cut off."),
      rolloutBytes: positive
        .default(1024 ** 3)
        .describe("Most bytes of the calls of one rollout in the journal; further calls are refused."),
      sealMs: positive
        .default(60_000)
        .describe(
          "Milliseconds for parsing the calls of a rollout when it is sealed; calls that are not parsed by then are kept as bytes.",
        ),
      headerBytes: positive.default(32 * 1024).describe("Most bytes of the headers of a request."),
      openRollouts: positive.default(100_000).describe("Most open rollouts; a further rollout is refused."),
      sealBacklog: positive
        .default(50_000)
        .describe(
          "Most calls without a rollout that are in progress or not sealed yet; a further call is refused.",
        ),
    })
    .prefault({})
    .describe("Bounds of memory and time."),
  rollouts: z
    .strictObject({
      idleMs: positive
        .default(15 * 60 * 1000)
        .describe("Milliseconds without a call after which a rollout is sealed."),
      maxTurns: z.optional(positive).describe("Most calls of one rollout (default: no limit)."),
      budgetUsd: z.optional(amount).describe("Budget of one rollout in US dollars (default: no limit)."),
      environment: z
        .string()
        .default("gateway@1")
        .describe("The environment that rollouts name, with its version."),
      dataSource: z.enum(["real", "synthetic"]).default("real").describe("How rollouts are marked."),
    })
    .prefault({})
    .describe("Rollouts that the gateway opens by itself, and limits of all rollouts."),
  worker: name
    .default("gateway")
    .describe(
      "The name of this gateway, in sealed rollouts and among its peers. It is unique within a book.",
    ),
  peers: z
    .record(name, z.url({ protocol: /^https?$/ }))
    .default({})
    .describe(
      "Other gateways on the same book, by their `worker` names: `http://host:8790`. They hold the same access tokens. The gateway itself may be listed.",
    ),
  upstreams: z.record(name, upstream).describe("Model servers, by name."),
  models: z.record(name, model).default({}).describe("Models that clients may ask for, by name."),
  routes: z
    .record(name, z.array(name).min(1))
    .default({})
    .describe(
      "Aliases: by name, the models that an alias stands for. The router chooses among them; without a `router` section, the gateway takes the first model that works.",
    ),
  router: z
    .optional(z.record(z.string(), z.json()))
    .describe("How the model of an alias is chosen: see below."),
  defaultUpstream: z.optional(name).describe("The upstream of models that are not listed."),
  redact: z
    .array(z.string().max(1024))
    .default([])
    .describe("Regular expressions: what they match is not recorded."),
});

export type GatewayConfig = z.output<typeof gatewaySchema>;
export type UpstreamConfig = GatewayConfig["upstreams"][string];
export type ModelConfig = GatewayConfig["models"][string];

export function parseGatewayConfig(text: string, where = "gateway.yaml"): GatewayConfig {
  return checkGatewayConfig(readYaml(text, (what) => bad(where, what)) ?? {}, where);
}

export function checkGatewayConfig(value: unknown, where = "configuration"): GatewayConfig {
  const result = gatewaySchema.safeParse(value);
  if (!result.success) throw bad(where, configProblem(gatewaySchema, result.error.issues, value, OF_A_LOOP));
  checkNames(result.data, where);
  return result.data;
}

const OF_A_LOOP = {
  key: "world",
  problem:
    "this is the file of a loop, not of a gateway. Start the loop with `rollbook run start --config`, or name the gateway's file",
};

/** Placeholder keys of local servers that do not check keys. They are not secrets, so redaction ignores them. */
export const PLACEHOLDER_KEYS: ReadonlySet<string> = new Set([
  ..."EMPTY empty none None null dummy test local key token x - sk- unused ollama vllm sglang".split(" "),
  ..."llama lmstudio lm-studio no-key nokey fake fake-key not-needed not-used no-key-required".split(" "),
  ..."sk-no-key-required placeholder dummy-key test-key".split(" "),
]);
/** A shorter key would match ordinary words, so redaction could not remove it from records. */
const MIN_KEY = 8;

/** The values of the named variables. An unset variable is an error and never disables a check. Placeholder keys are
 *  returned, but not as secrets. */
export function readSecrets(
  config: GatewayConfig,
  env: Readonly<Record<string, string | undefined>>,
): { tokens: string[]; keys: Map<string, string>; secrets: string[] } {
  const secrets: string[] = [];
  const need = (variableName: string, { reader, setting, placeholders }: SecretUse): string => {
    const value = env[variableName];
    if (value !== undefined && placeholders.has(value)) return value;
    if (value !== undefined && value !== "") {
      if (value.length < MIN_KEY) throw tooShort(variableName, reader);
      secrets.push(value);
      return value;
    }
    throw new RollbookError(
      "no-key",
      { variable: variableName },
      `${reader} from $${variableName}, which is not set. Set it, or remove ${setting}.`,
    );
  };
  const keys = new Map<string, string>();
  for (const [upstreamName, { keyEnv }] of Object.entries(config.upstreams))
    if (keyEnv !== undefined)
      keys.set(
        upstreamName,
        need(keyEnv, {
          reader: `upstream \`${upstreamName}\` reads its key`,
          ...{ setting: "keyEnv from the configuration", placeholders: PLACEHOLDER_KEYS },
        }),
      );
  // Placeholders are not allowed here: a well-known token would protect nothing.
  const tokens = config.tokensEnv.map((each) =>
    need(each, {
      ...{ reader: "the gateway reads an access token", setting: "it from tokensEnv", placeholders: NONE },
    }),
  );
  return { tokens, keys, secrets };
}

/** The variables that hold secrets of the gateway. An agent that asks a model server directly may need one of them. */
export function secretVariables({ upstreams, tokensEnv }: GatewayConfig): string[] {
  const keys = Object.values(upstreams).flatMap(({ keyEnv }) => (keyEnv === undefined ? [] : [keyEnv]));
  return [...keys, ...tokensEnv];
}

const NONE: ReadonlySet<string> = new Set();

interface SecretUse {
  /** Words of the errors, such as "upstream `main` reads its key". */
  readonly reader: string;
  /** The setting to remove if the variable is not wanted. */
  readonly setting: string;
  /** Values that are not secret. */
  readonly placeholders: ReadonlySet<string>;
}

function tooShort(variableName: string, reader: string): RollbookError {
  return new RollbookError(
    "short-key",
    { variable: variableName, least: MIN_KEY },
    `${reader} from $${variableName}, which has fewer than ${MIN_KEY} characters and could not be kept out of the record. Use a longer one; for a server that checks no key, EMPTY.`,
  );
}

function checkNames(config: GatewayConfig, where: string): void {
  const { upstreams, models, routes, defaultUpstream } = config;
  const need = (known: object, wanted: string, place: string) => {
    if (!Object.hasOwn(known, wanted))
      throw bad(
        where,
        `${place} names ${wanted}, which does not exist. Known: ${Object.keys(known).join(", ")}`,
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
  for (const [peer, url] of Object.entries(config.peers)) {
    parseId(peer, `peers.${peer}`);
    const { username, password } = new URL(url);
    if (username !== "" || password !== "")
      throw bad(where, `peers.${peer} holds a password. Gateways of a book share their tokens (tokensEnv)`);
  }
  const mixed = mixedRoute(config);
  if (mixed !== undefined) throw bad(where, mixed);
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
    `${where}: ${withRemedy(problem, "Correct the configuration; docs/gateway.md has examples.")}`,
    cause === undefined ? undefined : { cause },
  );
}
