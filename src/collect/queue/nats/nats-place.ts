/** Address and credentials of a queue on NATS. In: a URL and the environment. Out: servers, the queue's name,
 *  limits, credentials. The URL appears on command lines and in logs, so it carries no secret. Opens no connection. */
import { RollbookError } from "../../../base/index.ts";

export interface NatsPlace {
  /** `host:port` of one or more nodes of one cluster. */
  readonly servers: readonly string[];
  /** Name of the stream. It separates the queues of one server. */
  readonly name: string;
  /** Number of nodes with a copy. Undefined keeps the existing number, or 1 for a new queue. */
  readonly replicas: number | undefined;
  /** Maximum number of items of a new queue, including ended items. */
  readonly maxItems: number;
  readonly tls: boolean;
}

export interface NatsAccess {
  readonly user?: string;
  readonly pass?: string;
  readonly token?: string;
  /** Path of a .creds file. */
  readonly creds?: string;
  /** Path of an nkey seed. */
  readonly nkey?: string;
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
}

/** The variable names of the nats command line tool. Agents do not get these variables. */
export const NATS_VARIABLES = {
  user: "NATS_USER",
  pass: "NATS_PASSWORD",
  token: "NATS_TOKEN",
  creds: "NATS_CREDS",
  nkey: "NATS_NKEY",
  ca: "NATS_CA",
  cert: "NATS_CERT",
  key: "NATS_KEY",
} as const;

const DEFAULT_PORT = 4222;
const DEFAULT_NAME = "rollbook";
const MAX_ITEMS = 1_000_000;

export function isNatsUrl(text: string): boolean {
  return /^(nats|tls):\/\//.test(text);
}

export function parseNatsUrl(text: string): NatsPlace {
  const match = /^(nats|tls):\/\/([^/?#]+)(?:\/([^?#]*))?(?:\?([^#]*))?$/.exec(text);
  if (match === null) throw badUrl(text, "it is not nats://HOST[:PORT][,HOST…][/NAME][?replicas=3]");
  const [, scheme, hosts, name, query] = match;
  // The error does not repeat the URL: the part before the @ is a secret.
  if (hosts!.includes("@"))
    throw new RollbookError(
      "secret-in-url",
      {},
      `the URL of the queue holds credentials. Remove them, and set ${NATS_VARIABLES.user} and ${NATS_VARIABLES.pass}, ${NATS_VARIABLES.token} or ${NATS_VARIABLES.creds} in the environment.`,
    );
  if (name && !/^[A-Za-z0-9_-]{1,64}$/.test(name))
    throw badUrl(text, `the name ${JSON.stringify(name)} has more than letters, digits, - and _`);
  const options = new URLSearchParams(query ?? "");
  for (const key of options.keys())
    if (key !== "replicas" && key !== "max-items")
      throw badUrl(text, `${key} is not an option; there are replicas and max-items`);
  return {
    servers: hosts!.split(",").map((host) => withPort(text, host)),
    name: name || DEFAULT_NAME,
    replicas: wholeOption(text, options, "replicas", 5),
    maxItems: wholeOption(text, options, "max-items", 1_000_000_000) ?? MAX_ITEMS,
    tls: scheme === "tls",
  };
}

/** Empty variables count as unset. */
export function accessFrom(env: Readonly<Record<string, string | undefined>>): NatsAccess {
  return Object.fromEntries(
    Object.entries(NATS_VARIABLES).flatMap(([field, variable]) =>
      env[variable] ? [[field, env[variable]]] : [],
    ),
  );
}

function withPort(text: string, host: string): string {
  if (!/^(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_.-]+)(:\d{1,5})?$/.test(host))
    throw badUrl(text, `${JSON.stringify(host)} is not a host`);
  return /:\d+$/.test(host.replace(/^\[.*\]/, "")) ? host : `${host}:${DEFAULT_PORT}`;
}

function wholeOption(text: string, options: URLSearchParams, name: string, most: number): number | undefined {
  const value = options.get(name);
  if (value === null) return undefined;
  const number = Number(value);
  if (!/^\d+$/.test(value) || number < 1 || number > most)
    throw badUrl(text, `${name} must be a whole number from 1 to ${most}`);
  return number;
}

function badUrl(text: string, why: string): RollbookError {
  return new RollbookError(
    "bad-queue-url",
    { url: text },
    `${text}: ${why}. For example nats://127.0.0.1:4222/rollbook.`,
  );
}
