/** Opens a gateway on a book. In: a book, a configuration. Out: a listening gateway; closing it closes the book if it was
 *  opened here. */
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { type Rng, RollbookError, rngFrom } from "../../base/index.ts";
import type { Gateway, GatewayConfig, GatewayOptions } from "../../collect/gateway/index.ts";
import { openPlace, type PlaceRequest } from "./place.ts";

export interface GatewayRequest extends PlaceRequest, Pick<GatewayOptions, "choose" | "local" | "redact"> {
  /** The path of a YAML file, or what such a file says. */
  readonly config: string | object;
  /** Instead of the configured ones. Port 0 takes a free one. */
  readonly host?: string | undefined;
  readonly port?: number | undefined;
  readonly record?: GatewayConfig["record"] | undefined;
  /** Where the variables are that the configuration names (default: the environment of this process). */
  readonly env?: GatewayOptions["env"] | undefined;
  readonly rng?: Rng | undefined;
  /** Ids of rollouts that were not given one. */
  readonly newId?: (() => string) | undefined;
}

export interface OpenGateway extends Gateway {
  readonly config: GatewayConfig;
}

export async function openGateway(request: GatewayRequest): Promise<OpenGateway> {
  const { env = process.env, rng = freshRng(), newId = () => `r-${randomUUID()}` } = request;
  const { choose, local, redact, log } = request;
  // Loaded when asked for: a program that only reads a book needs no HTTP client.
  const module = await import("../../collect/gateway/index.ts");
  const config = configOf(request, module);
  const { book, clock, signer, admit, leave } = await openPlace(request, { create: true });
  try {
    const gateway = await module.openGateway({
      ...{ config, book: book.store, clock, signer, admit, rng, newId, env, choose, local, redact, log },
    });
    return {
      ...gateway,
      config,
      async close(graceMs) {
        try {
          await gateway.close(graceMs);
        } finally {
          await leave();
        }
      },
    };
  } catch (error) {
    await leave();
    throw error;
  }
}

type GatewayModule = typeof import("../../collect/gateway/index.ts");

function configOf(
  { config: given, host, port, record }: GatewayRequest,
  { checkGatewayConfig, parseGatewayConfig }: GatewayModule,
): GatewayConfig {
  const config =
    typeof given === "string" ? parseGatewayConfig(readConfig(given), given) : checkGatewayConfig(given);
  const listen = { host: host ?? config.listen.host, port: port ?? config.listen.port };
  return { ...config, listen, record: record ?? config.record };
}

function readConfig(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (cause) {
    throw new RollbookError(
      "no-config",
      { path },
      `${path} cannot be read. Name a configuration with --config.`,
      { cause },
    );
  }
}

function freshRng(): Rng {
  return rngFrom(BigInt(`0x${randomUUID().replaceAll("-", "").slice(0, 16)}`));
}
