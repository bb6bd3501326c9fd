/** Forwards requests between gateways that share a book. Each rollout has one owner, which counts its turns and its
 *  budget. In: a request. Out: the owner's answer, passed on as it arrives. A forwarded request is marked and never
 *  forwarded again. Keys and tokens go only to the configured addresses. Records nothing: the owner records. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { Pool } from "undici";
import { type Clock, reasonOf } from "../../../base/index.ts";
import type { GatewayConfig } from "../config.ts";
import { dialectAt, isObject, tryParse } from "../dialects/index.ts";
import type { Metrics } from "../metrics.ts";
import { HttpRefusal } from "../wire/index.ts";
import { type ApiPath, decodePart } from "./api-path.ts";
import type { Caller } from "./identity.ts";
import { splitCall } from "./requests.ts";

/** Set by the forwarding gateway; holds its name. */
const FORWARDED_HEADER = "x-rollbook-forwarded-by";
const CONNECT_MS = 3_000;
/** A peer looks the owner of a rollout up in memory, so a short timeout is enough. */
const ASK_MS = 5_000;
/** Pause before a peer that did not answer is asked again. Without it, openings would wait for the peer. */
const REST_MS = 2_000;
/** The owner waits for its upstreams by its own settings. This timeout only frees connections to a lost host. */
const SILENT_MS = 30 * 60_000;

/** Headers that belong to one connection. */
const OF_CONNECTION: ReadonlySet<string> = new Set([
  ...["host", "connection", "keep-alive", "proxy-connection", "te", "trailer", "upgrade"],
  ...["transfer-encoding", "expect", "content-length"],
]);

interface Peer {
  readonly name: string;
  readonly origin: string;
  /** Path of the peer's URL, before the API paths. */
  readonly prefix: string;
  readonly pool: Pool;
  restsUntilMs: number;
}

interface PeersOptions {
  readonly config: Pick<GatewayConfig, "peers" | "worker" | "limits">;
  /** The token that all gateways of a book share. Undefined on loopback without tokens. */
  readonly token: string | undefined;
  /** True if this gateway can answer for the rollout: it is open here, or the book holds it. */
  readonly knows: (rollout: string) => boolean;
  readonly clock: Clock;
  readonly metrics: Metrics;
  readonly log: (line: string) => void;
}

/** A request, with the facts that identify its rollout. */
interface Asking {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly path: ApiPath;
  readonly caller: Caller;
  readonly body: Buffer;
}

export class Peers {
  readonly #options: PeersOptions;
  readonly #peers: ReadonlyMap<string, Peer>;

  constructor(options: PeersOptions) {
    this.#options = options;
    const { peers, worker: gatewayName } = options.config;
    // All gateways may share one configuration file, and a gateway is not its own peer.
    const others = Object.entries(peers).filter(([name]) => name !== gatewayName);
    this.#peers = new Map(others.map(([name, url]) => [name, openPeer(name, url)]));
  }

  get isAlone(): boolean {
    return this.#peers.size === 0;
  }

  /** Name of the gateway that must answer. Undefined for this gateway. */
  #ownerOf(asking: Asking): string | undefined | Promise<string | undefined> {
    const { caller, path, request, body } = asking;
    if (this.isAlone && caller.owner === undefined) return undefined;
    const isForwarded = request.headers[FORWARDED_HEADER] !== undefined;
    const { worker: gatewayName } = this.#options.config;
    if (caller.owner !== undefined && caller.owner !== gatewayName && isOfRollout(path)) {
      if (isForwarded) throw forwardedWrongly(caller.owner, gatewayName);
      if (!this.#peers.has(caller.owner)) throw unknownOwner(caller.owner);
      return caller.owner;
    }
    if (isForwarded || caller.owner === gatewayName) return undefined;
    const rollout = concernedBy({ caller, path, body });
    if (rollout === undefined || this.#options.knows(rollout)) return undefined;
    return this.#find(rollout, isOpening(path));
  }

  /** Answers here, or forwards the request to the gateway that owns its rollout. Returns a promise if the answer
   *  takes time. A refusal is thrown, or rejects the promise. */
  byOwner(asking: Asking, answer: () => Promise<void> | undefined): Promise<void> | undefined {
    const owner = this.#ownerOf(asking);
    if (owner === undefined) return answer();
    return Promise.resolve(owner).then((name) =>
      name === undefined ? answer() : this.#forward(name, asking),
    );
  }

  /** Resolves when the answer has been passed on. */
  async #forward(owner: string, { request, response, body }: Asking): Promise<void> {
    // The client left during the search for the owner: a request sent now would not be aborted.
    if (response.destroyed) return;
    const { pool, prefix } = this.#peers.get(owner)!;
    const { metrics, config } = this.#options;
    const counted = (outcome: string) =>
      metrics.count("rollbook_gateway_forwarded_total", { peer: owner, outcome });
    const left = new AbortController();
    response.once("close", () => left.abort());
    try {
      await pool.stream(
        {
          method: request.method as "GET" | "POST",
          path: prefix + (request.url ?? "/"),
          headers: [...passedOn(request.rawHeaders), FORWARDED_HEADER, config.worker],
          body: body.length === 0 ? null : body,
          signal: left.signal,
        },
        ({ statusCode, headers }) => response.writeHead(statusCode, returned(headers)),
      );
      counted("answered");
    } catch (cause) {
      if (response.destroyed && !response.headersSent) return; // the client left
      counted("failed");
      if (response.headersSent) response.destroy();
      else throw ownerAway(owner, cause);
    }
  }

  async close(): Promise<void> {
    await Promise.all([...this.#peers.values()].map(({ pool }) => pool.destroy()));
  }

  /** Asks all peers. A peer that is away may own the rollout, so only the opening of a new rollout continues without
   *  its answer. */
  async #find(rollout: string, isNew: boolean): Promise<string | undefined> {
    const found = await Promise.all(
      [...this.#peers.values()].map(async (peer) => ({ peer, says: await this.#ask(peer, rollout) })),
    );
    const owner = found.find(({ says }) => says === "open") ?? found.find(({ says }) => says === "closed");
    if (owner !== undefined) return owner.peer.name;
    const away = found.filter(({ says }) => says === "away").map(({ peer }) => peer.name);
    if (away.length === 0 || isNew) return undefined;
    throw perhapsAway(rollout, away);
  }

  async #ask(peer: Peer, rollout: string): Promise<"open" | "closed" | "unknown" | "away"> {
    const { token, config, clock, log } = this.#options;
    if (clock.nowMs() < peer.restsUntilMs) return "away";
    try {
      const { statusCode, body } = await peer.pool.request({
        method: "GET",
        path: `${peer.prefix}/v1/rollouts/${encodeURIComponent(rollout)}`,
        headers: {
          [FORWARDED_HEADER]: config.worker,
          ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        },
        signal: AbortSignal.timeout(ASK_MS),
      });
      const text = await body.text();
      if (statusCode === 200) return "open";
      if (statusCode === 404) return "unknown";
      if (statusCode === 503 && text.includes('"rollout-closed"')) return "closed";
      log(`the gateway ${peer.name} (${peer.origin}) answers ${statusCode}: ${text.slice(0, 200)}`);
    } catch (error) {
      log(`the gateway ${peer.name} (${peer.origin}) does not answer: ${reasonOf(error)}`);
    }
    peer.restsUntilMs = clock.nowMs() + REST_MS;
    return "away";
  }
}

function openPeer(name: string, url: string): Peer {
  const { origin, pathname } = new URL(url);
  const pool = new Pool(origin, {
    ...{ connections: 256, pipelining: 1, connect: { timeout: CONNECT_MS } },
    ...{ headersTimeout: SILENT_MS, bodyTimeout: SILENT_MS },
  });
  return { name, origin, prefix: pathname.replace(/(\/v1)?\/*$/, ""), pool, restsUntilMs: 0 };
}

/** True for model calls and decisions, which belong to a rollout. Any gateway answers all other requests, with any
 *  key. */
function isOfRollout({ path }: ApiPath): boolean {
  return dialectAt(path) !== undefined || path === "/v1/route";
}

function isOpening({ path }: ApiPath): boolean {
  return path === "/v1/rollouts";
}

/** The rollout that a request names, if any. */
function concernedBy({ caller, path, body }: Pick<Asking, "caller" | "path" | "body">): string | undefined {
  if (isOfRollout(path)) return caller.rollout;
  const [, named] = /^\/v1\/rollouts\/([^/]+)(?:\/close)?$/.exec(path.path) ?? [];
  if (named !== undefined) return decodePart(named);
  if (!isOpening(path) && path.path !== "/v1/feedback") return undefined;
  const value = body.length === 0 ? undefined : tryParse(body.toString());
  if (!isObject(value)) return undefined;
  const { id, rollout, call } = value;
  if (isOpening(path)) return typeof id === "string" ? id : undefined;
  if (typeof rollout === "string") return rollout;
  return typeof call === "string" ? splitCall(call).rollout : undefined;
}

/** Takes and returns names and values alternately. */
function passedOn(raw: readonly string[]): string[] {
  const headers: string[] = [];
  for (let i = 0; i < raw.length; i += 2)
    if (!OF_CONNECTION.has(raw[i]!.toLowerCase())) headers.push(raw[i]!, raw[i + 1]!);
  return headers;
}

function returned(
  headers: Readonly<Record<string, string | string[] | undefined>>,
): Record<string, string | string[]> {
  const kept = Object.entries(headers).filter(
    (header): header is [string, string | string[]] =>
      header[1] !== undefined && (header[0] === "content-length" || !OF_CONNECTION.has(header[0])),
  );
  return Object.fromEntries(kept);
}

function ownerAway(owner: string, cause: unknown): HttpRefusal {
  return new HttpRefusal(
    503,
    "owner-away",
    `the rollout belongs to the gateway ${owner}, which does not answer: ${reasonOf(cause)}. It goes on when ${owner} runs again.`,
    { retry: true, fields: { owner }, cause },
  );
}

function perhapsAway(rollout: string, away: readonly string[]): HttpRefusal {
  return new HttpRefusal(
    503,
    "owner-away",
    `rollout ${JSON.stringify(rollout.slice(0, 80))} is not open here and may belong to a gateway that does not answer: ${away.join(", ")}. Ask again when it runs.`,
    { retry: true, fields: { away } },
  );
}

function unknownOwner(owner: string): HttpRefusal {
  return new HttpRefusal(
    503,
    "unknown-owner",
    `the rollout belongs to the gateway ${owner}, which is not among the peers of this one. Add it to \`peers\`, or ask ${owner} itself.`,
    { fields: { owner } },
  );
}

function forwardedWrongly(owner: string, gatewayName: string): HttpRefusal {
  return new HttpRefusal(
    421,
    "wrong-gateway",
    `a request for the gateway ${owner} was forwarded to ${gatewayName}. Correct the address of ${owner} under \`peers\`.`,
    { fields: { owner, worker: gatewayName } },
  );
}
