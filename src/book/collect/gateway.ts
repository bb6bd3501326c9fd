/** Opens a gateway on a book.
 *  In: a book, a configuration. Out: a listening gateway. Closing the gateway closes the book if the gateway opened
 *  it. */
import { randomUUID } from "node:crypto";
import { type Clock, type Rng, rngFrom, systemClock } from "../../base/index.ts";
import type { Gateway, GatewayConfig, GatewayOptions } from "../../collect/gateway/index.ts";
import { requirePort } from "../../collect/index.ts";
import { type GatewayTelemetry, openTelemetry, otlpConfig } from "../../collect/telemetry/index.ts";
import { openRouter, routerMetrics } from "../../serve/index.ts";
import { readText } from "../../store/index.ts";
import {
  type BookRouter,
  embedderOf,
  openNamedRouter,
  openServedRouter,
  routeCandidates,
  routerConfigOf,
  type Trusts,
  trustsOf,
  withAliases,
} from "../serve/index.ts";
import { openPlace, type PlaceRequest } from "./place.ts";

export interface GatewayRequest
  extends PlaceRequest,
    Pick<GatewayOptions, "choose" | "local" | "redact" | "onEvent" | "keptThread"> {
  /** Path of a YAML file, or the content of such a file. */
  readonly config: string | object;
  /** Overrides the configured address. Port 0 selects a free port. */
  readonly host?: string | undefined;
  readonly port?: number | undefined;
  readonly record?: GatewayConfig["record"] | undefined;
  readonly worker?: string | undefined;
  /** Environment that holds the variables named in the configuration (default: the environment of this process). */
  readonly env?: GatewayOptions["env"] | undefined;
  readonly rng?: Rng | undefined;
  /** Makes ids for rollouts that come without one. */
  readonly newId?: (() => string) | undefined;
}

export interface OpenGateway extends Gateway {
  readonly config: GatewayConfig;
  /** Router of the gateway, if the configuration has one: it knows the serving policy and the reason. */
  readonly router?: BookRouter["router"] | undefined;
}

/** Part of the time for a stop that the last spans may take. */
const LAST_SPANS_MS = 1000;
const GRACE_MS = 10_000;

export async function openGateway(request: GatewayRequest): Promise<OpenGateway> {
  const { env = process.env, rng = freshRng(), newId = () => `r-${randomUUID()}` } = request;
  const { local, redact, log, onEvent, keptThread } = request;
  // Loaded on demand: a program that only reads a book needs no HTTP client.
  const module = await import("../../collect/gateway/index.ts");
  const read = configOf(request, module);
  const routing = request.choose === undefined ? routerConfigOf(read, env) : undefined;
  const config = routing === undefined ? read : withAliases(read, routing);
  const { book, clock, signer, trusts, admit, leave } = await openPlace(request, {
    create: true,
    beforeNew: () => requireStart(module, { config, env, routing, clock: request.clock }),
  });
  let served: BookRouter | undefined;
  let telemetry: GatewayTelemetry | undefined;
  const end = async () => {
    await telemetry?.close(LAST_SPANS_MS);
    await served?.close();
    await leave();
  };
  try {
    telemetry = openTelemetry(env, { book: book.store.id, worker: config.worker, log });
    const trustsKey: Trusts = (key) => key === signer.publicKey || trusts(key);
    if (routing !== undefined)
      served = await openServedRouter(book, routing, {
        ...{ candidates: routeCandidates(config, routing), log, trusts: trustsKey, isForCalls: true, signer },
      });
    const named = { log, trusts: routing === undefined ? undefined : trustsOf(routing, trustsKey) };
    const router = served?.router;
    const gateway = await module.openGateway({
      ...{ config, book: book.store, clock, signer, admit, rng, newId, env, local, redact, log },
      keptThread,
      choose: request.choose ?? router?.choose,
      loadRouter: (digest) => openNamedRouter(book, digest, named),
      embed:
        routing === undefined || router === undefined
          ? undefined
          : embedderOf(routing, router, { clock, env, log }),
      onEvent: bothHear(onEvent, telemetry?.onEvent),
      moreMetrics: () => (router ? routerMetrics(router.status()) : "") + (telemetry?.metrics() ?? ""),
    });
    return {
      ...gateway,
      config,
      router,
      async close(graceMs = GRACE_MS) {
        try {
          await gateway.close(telemetry === undefined ? graceMs : Math.max(0, graceMs - LAST_SPANS_MS));
        } finally {
          await end();
        }
      },
    };
  } catch (error) {
    await end();
    throw error;
  }
}

/** Throws if the gateway could not start. A mistake in a command must not leave a new book. */
async function requireStart(
  { checkStart }: GatewayModule,
  {
    config,
    env,
    routing,
    clock = systemClock,
  }: Pick<GatewayOptions, "config" | "env"> & {
    routing: ReturnType<typeof routerConfigOf>;
    clock: Clock | undefined;
  },
): Promise<void> {
  checkStart({ config, env });
  otlpConfig(env);
  if (routing !== undefined) {
    const router = await openRouter(routing, { candidates: routeCandidates(config, routing), clock });
    await router.close();
  }
  await requirePort(config.listen);
}

function bothHear(
  one: GatewayOptions["onEvent"],
  other: GatewayOptions["onEvent"],
): GatewayOptions["onEvent"] {
  if (one === undefined || other === undefined) return one ?? other;
  return (event) => {
    one(event);
    other(event);
  };
}

type GatewayModule = typeof import("../../collect/gateway/index.ts");

const NO_CONFIG = {
  code: "no-config",
  remedy: "Name a configuration with --config; `rollbook init --example DIR` writes one",
};

function configOf(
  { config: given, host, port, record, worker }: GatewayRequest,
  { checkGatewayConfig, parseGatewayConfig }: GatewayModule,
): GatewayConfig {
  const config =
    typeof given === "string"
      ? parseGatewayConfig(readText(given, "the configuration of a gateway", NO_CONFIG), given)
      : checkGatewayConfig(given);
  const { listen } = config;
  const at = { ...listen, host: host ?? listen.host, port: port ?? listen.port };
  return { ...config, listen: at, record: record ?? config.record, worker: worker ?? config.worker };
}

function freshRng(): Rng {
  return rngFrom(BigInt(`0x${randomUUID().replaceAll("-", "").slice(0, 16)}`));
}
