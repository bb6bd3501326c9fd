/** The gateway as an HTTP server: who may ask what, and who answers. In: configuration, a book, a router. Out: a
 *  listening server that records. Model calls are in model-call.ts, everything else it answers in control-api.ts. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import {
  type Clock,
  given,
  isRollbookError,
  type Json,
  type Rng,
  RollbookError,
  reasonOf,
} from "../../../base/index.ts";
import type { Signer } from "../../../contract/index.ts";
import { type PromptVectors, promptOfMessages } from "../../../policy/index.ts";
import { type Book, type Catalog, type Lock, openCatalog, tryLock } from "../../../store/index.ts";
import { listenOn } from "../../listen.ts";
import type { Admit } from "../../receipt.ts";
import type { RolloutDesk } from "../../rollout-desk.ts";
import {
  type CallContext,
  estimateAgain,
  isCredentialHeader,
  ModelCall,
  Returned,
  reservationUsd,
  type TellEvent,
  TurnEnd,
} from "../call/index.ts";
import { compile, type GatewayConfig, PLACEHOLDER_KEYS, readSecrets } from "../config.ts";
import { type Dialect, dialectAt, openAiError } from "../dialects/index.ts";
import { JournalReader } from "../journal/index.ts";
import { Metrics } from "../metrics.ts";
import {
  type Redact,
  type RedactOptions,
  redactCall,
  redactOptions,
  redactText,
  redactValue,
} from "../redact/index.ts";
import {
  ClosedIndex,
  type DamagedRollout,
  NamedRecords,
  type Recovered,
  Rollouts,
  type RolloutsOptions,
  recoverRollouts,
} from "../rollouts/index.ts";
import { DecisionSealer, SealQueue } from "../sealing/index.ts";
import {
  type Choose,
  firstInList,
  type LoadRouter,
  type LocalUpstream,
  Routes,
  Upstream,
} from "../upstream/index.ts";
import { cannotRecord, HttpRefusal, isDiskFailure, parseBody, readBody } from "../wire/index.ts";
import { ControlApi, sendJson } from "./control-api.ts";
import { HostCheck, LOOPBACK } from "./host-check.ts";
import { type ApiPath, type Caller, Gatekeeper, parsePath } from "./identity.ts";
import { Peers } from "./peers.ts";
import { refuseSecrets } from "./redact-requests.ts";

export interface GatewayOptions {
  readonly config: GatewayConfig;
  /** Opened to write; stays the caller's to close. */
  readonly book: Book;
  readonly clock: Clock;
  readonly rng: Rng;
  /** Ids of rollouts that were not given one. Must be unique over the life of the book. */
  readonly newId: () => string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly signer?: Signer | undefined;
  /** The router for aliases; without one, the first of the list that works. */
  readonly choose?: Choose | undefined;
  /** Reads the routers that rollouts name when they are opened; without it such an opening is refused. */
  readonly loadRouter?: LoadRouter | undefined;
  /** The vectors of a prompt, asked for before that router chooses; undefined: the router gets none. The call waits for it.
   *  A stop aborts the signal. */
  readonly embed?: ((prompt: string, signal: AbortSignal) => Promise<PromptVectors | undefined>) | undefined;
  /** More lines of `GET /metrics`, as of that router. */
  readonly moreMetrics?: (() => string) | undefined;
  /** Judges every artifact when its rollout is closed; what it says stands in a receipt. */
  readonly admit?: Admit | undefined;
  /** Upstreams of this process, for base URLs of the form `local:<name>`. */
  readonly local?: Readonly<Record<string, LocalUpstream>> | undefined;
  /** Sees every message, tool list, parameter object and final state before it is recorded, and the words and names
   *  that come with rollouts and feedback; a name that it changes is refused. */
  readonly redact?: Redact | undefined;
  readonly log?: ((line: string) => void) | undefined;
  /** Hears of every call when it ends, of failovers, of rollouts that are closed, and of calls that the gateway
   *  refuses. Must be quick: calls wait for it. */
  readonly onEvent?: TellEvent | undefined;
}

export interface Gateway {
  readonly url: string;
  readonly host: string;
  readonly port: number;
  /** Open rollouts found from an earlier run. */
  readonly recovered: readonly string[];
  /** Rollouts of an earlier run of which the journal has lost something. */
  readonly damaged: readonly DamagedRollout[];
  /** Opens, looks at and closes rollouts like the paths below /v1/rollouts, for programs that hold the gateway. */
  readonly desk: RolloutDesk;
  /** Seals rollouts that have been silent for too long; also done by a timer. */
  sealIdle(): Promise<number>;
  /** Stops listening, lets calls in progress end, seals what is closed, and nothing that is still open. Ends within
   *  `graceMs`: calls that go on after `callsMs` are cut, and what is not sealed then is sealed by the next start. */
  close(graceMs?: number, callsMs?: number): Promise<void>;
}

const IDLE_CHECK_MS = 5_000;
/** As long as a record takes it. */
const MAX_NAME = 512;
/** Of the time for a stop, that of calls in progress. */
const CALLS_SHARE = 0.6;
/** … and what writing the rest takes. */
const END_MS = 500;
/** Longer than the pools of common clients, so that they close first. */
const KEEP_ALIVE_MS = 75_000;

export async function openGateway(options: GatewayOptions): Promise<Gateway> {
  const { config, book } = options;
  const { tokens, keys, secrets } = readSecrets(config, options.env);
  if (tokens.length === 0 && !LOOPBACK.test(config.listen.host))
    throw new RollbookError(
      "bad-config",
      { host: config.listen.host },
      `the gateway would listen on ${config.listen.host} without a token. Set tokensEnv, or listen on 127.0.0.1.`,
    );
  const lock = takeLock(book.root, config.worker);
  let catalog: Catalog | undefined;
  let recovered: Recovered | undefined;
  let server: GatewayServer | undefined;
  try {
    const directory = join(book.root, "journal", encodeURIComponent(config.worker));
    // Reads what was written since the catalog was last brought up to date, here or by anybody else.
    const opened = openCatalog(book.root);
    catalog = opened;
    await opened.sync();
    const closed = new ClosedIndex(opened, config.worker);
    recovered = recoverRollouts({ directory, catalog: opened, closed, signer: options.signer?.publicKey });
    server = new GatewayServer(options, { tokens, keys, secrets, closed, recovered, directory });
    await server.start();
    const release = () => {
      opened.close();
      lock.release();
    };
    return server.handle(release);
  } catch (error) {
    try {
      await server?.abandon();
      await recovered?.journal.close().catch((reason) => {
        options.log?.(`the journal could not be closed: ${reasonOf(reason)}`);
      });
    } finally {
      catalog?.close();
      lock.release();
    }
    throw error;
  }
}

/** Two gateways of one name would take up each other's rollouts. */
function takeLock(root: string, worker: string): Lock {
  const lock = tryLock(join(root, "locks", `gateway-${encodeURIComponent(worker)}.gateway`));
  if (lock !== undefined) return lock;
  throw new RollbookError(
    "gateway-running",
    { root, worker },
    `another gateway named ${worker} works on ${root}. Stop it, or give this one another \`worker\` name.`,
  );
}

/** A response, and the bytes that its request holds until it is sent. */
type GatewayResponse = ServerResponse & { heldBytes?: number };

class GatewayServer {
  readonly #options: GatewayOptions;
  readonly #server: Server;
  readonly #gatekeeper: Gatekeeper;
  readonly #hosts: HostCheck;
  readonly #peers: Peers;
  readonly #calls: CallContext;
  readonly #rollouts: Rollouts;
  readonly #sealing: SealQueue;
  readonly #metrics = new Metrics();
  readonly #control: ControlApi;
  readonly #redact: RedactOptions;
  readonly #embed: ((prompt: string) => Promise<PromptVectors | undefined>) | undefined;
  readonly #found: Recovered;
  readonly #directory: string;
  #recovered: string[] = [];
  #idleTimer: NodeJS.Timeout | undefined;
  #active = 0;
  /** What the gateway answers itself, and has not answered yet. */
  readonly #posts = new Set<Promise<void>>();
  #stopping = false;
  /** Aborted once no client waits for an embedding any more. */
  readonly #embedding = new AbortController();
  readonly #onClose: (this: GatewayResponse) => void;
  /** Bytes of request bodies that are being read, or whose calls are in progress. */
  #heldBytes = 0;

  constructor(
    options: GatewayOptions,
    given: {
      tokens: string[];
      keys: Map<string, string>;
      secrets: readonly string[];
      closed: ClosedIndex;
      recovered: Recovered;
      directory: string;
    },
  ) {
    const { config, book, clock, rng, signer, newId, admit } = options;
    const { tokens, keys, secrets, closed, recovered, directory } = given;
    const { journal } = recovered;
    this.#options = options;
    this.#found = recovered;
    this.#directory = directory;
    const metrics = this.#metrics;
    const redact = redactOptions([...secrets, ...headerSecrets(config)], {
      patterns: config.redact.map((each) => compile(each)),
      redact: options.redact,
    });
    const returned = new Returned(redact.secrets);
    this.#redact = redact;
    const log = (line: string) => options.log?.(redactText(line, redact));
    const onDeath = () => metrics.count("rollbook_gateway_sealing_deaths_total");
    const at = { root: book.root, worker: config.worker, journal, directory };
    const readMs = config.limits.sealMs;
    const sealing = new SealQueue({ ...at, signer, admit, clock, log, onDeath, readMs });
    this.#sealing = sealing;
    const named = new NamedRecords((digests) => sealing.look(digests));
    const checkNamed: RolloutsOptions["checkNamed"] = (id, opening) => named.check(id, opening);
    const records = { store: book, journal, closed, sealing, checkNamed };
    const { dataSource } = config.rollouts;
    const decisions = new DecisionSealer({
      ...{ store: book, signer, admit, clock, worker: config.worker, dataSource },
    });
    const onClosed = options.onEvent && tellClosed(options.onEvent, clock);
    const rollouts = new Rollouts({
      ...{ config, ...records, decisions, signer, clock, newId, metrics, log, onClosed },
    });
    this.#rollouts = rollouts;
    this.#hosts = new HostCheck(config.listen.host, config.listen.names);
    const knows = (id: string) => rollouts.knows(id);
    this.#peers = new Peers({ config, token: tokens[0], knows, clock, metrics, log });
    const name = this.#peers.isAlone ? undefined : config.worker;
    this.#gatekeeper = new Gatekeeper(tokens, (id) => rollouts.isOpen(id), name);
    this.#calls = {
      ...{ config, clock, rollouts, journal, metrics, record: config.record },
      steadyMs: () => performance.now(),
      turnEnd: new TurnEnd(),
      redact: redactCall(redact),
      ...{ returned, replies: { heldBytes: 0 } },
      routes: new Routes(config, options.choose ?? firstInList(rng.split("routes")), options.loadRouter),
      upstreams: openUpstreams(options, keys, metrics),
      log,
      tell: options.onEvent,
    };
    const { routes, upstreams } = this.#calls;
    const { embed } = options;
    this.#embed = embed && ((prompt) => embed(prompt, this.#embedding.signal));
    this.#control = new ControlApi({
      ...{ rollouts, routes, upstreams, redact, book, returned, embed: this.#embed },
      maxErrorBytes: config.limits.responseBytes,
      keyFor: (rollout) => this.#gatekeeper.keyFor(rollout),
      metrics: () => {
        metrics.set("rollbook_gateway_active_calls", this.#active);
        metrics.set("rollbook_gateway_seal_backlog", sealing.waiting);
        metrics.set("rollbook_gateway_unsealed_singles", rollouts.unsealedSingles);
        return metrics.text() + (options.moreMetrics?.() ?? "");
      },
    });
    const server = this;
    this.#onClose = function (this: GatewayResponse) {
      server.#active--;
      server.#heldBytes -= this.heldBytes ?? 0;
    };
    this.#server = createServer(
      { maxHeaderSize: config.limits.headerBytes, keepAliveTimeout: KEEP_ALIVE_MS, noDelay: true },
      (request, response) => this.#serve(request, response),
    );
  }

  async start(): Promise<void> {
    const { config } = this.#options;
    const journal = new JournalReader(this.#directory);
    try {
      estimateAgain(this.#found.open, { journal, routes: this.#calls.routes, limits: config.limits });
    } finally {
      journal.close();
    }
    await this.#rollouts.adopt(this.#found);
    await this.#readyRouters();
    this.#recovered = this.#rollouts.openIds;
    await listenOn(this.#server, config.listen);
    const everyMs = Math.min(IDLE_CHECK_MS, Math.ceil(config.rollouts.idleMs / 4));
    this.#idleTimer = setInterval(() => {
      this.#rollouts.sealIdle().catch(ignore); // logged with the rollout's name
    }, everyMs).unref();
  }

  /** Of rollouts that an earlier run left open. One whose router is gone refuses its calls, and says why. */
  async #readyRouters(): Promise<void> {
    const { routes, log } = this.#calls;
    const named = this.#found.open.flatMap(({ opening: { router } }) =>
      router === undefined ? [] : [router],
    );
    for (const router of new Set(named))
      await routes.ready(router).catch((error) => log(`the router ${router}: ${reasonOf(error)}`));
  }

  handle(release: () => void): Gateway {
    const { address, port } = this.#server.address() as AddressInfo;
    const host = address.includes(":") ? `[${address}]` : address;
    return {
      url: `http://${host}:${port}`,
      host: address,
      port,
      recovered: this.#recovered,
      damaged: this.#found.damaged,
      desk: this.#desk(),
      sealIdle: () => this.#rollouts.sealIdle(),
      close: async (graceMs = 10_000, callsMs = CALLS_SHARE * graceMs) => {
        await this.#stop(graceMs, callsMs).finally(release);
      },
    };
  }

  #desk(): RolloutDesk {
    const tracked = <T>(work: Promise<T>): Promise<T> => {
      const over = work.then(ignore, ignore);
      this.#posts.add(over);
      void over.then(() => this.#posts.delete(over));
      return work;
    };
    return {
      open: (opening) => tracked(this.#control.open(opening)),
      status: (rollout) => this.#rollouts.status(rollout),
      close: (rollout, closing) => tracked(this.#control.close(rollout, closing)),
    };
  }

  /** After a start that failed. */
  async abandon(): Promise<void> {
    await this.#rollouts.settle();
    await this.#sealing.close();
    await this.#closeUpstreams();
  }

  async #stop(graceMs: number, callsMs: number): Promise<void> {
    this.#stopping = true;
    clearInterval(this.#idleTimer);
    const late = setTimeout(() => void this.#sealing.abandon(), graceMs - END_MS);
    const silent = new Promise((done) => this.#server.close(done));
    this.#server.closeIdleConnections();
    const cut = setTimeout(() => this.#server.closeAllConnections(), callsMs);
    await silent;
    clearTimeout(cut);
    // Connections that were cut tell their calls in the next turn; a call that still has not heard ends with its upstream.
    for (const _ of [1, 2]) await new Promise(setImmediate);
    this.#embedding.abort();
    await this.#closeUpstreams();
    await this.#rollouts.quiet();
    await Promise.allSettled(this.#posts);
    await this.#rollouts.settle();
    await this.#sealing.close();
    clearTimeout(late);
    await this.#found.journal.close();
    await this.#options.book.flush();
  }

  async #closeUpstreams(): Promise<void> {
    const all = [...this.#calls.upstreams.values(), this.#peers];
    await Promise.all(all.map((each) => each.close()));
  }

  #serve(request: IncomingMessage, response: GatewayResponse): void {
    this.#active++;
    response.on("close", this.#onClose);
    // A socket that breaks is the client's business; its call hears of it by "close".
    response.on("error", ignore);
    if (this.#stopping) response.setHeader("connection", "close");
    const path = parsePath(request.url ?? "/");
    try {
      this.#route(request, response, path);
    } catch (error) {
      this.#refuse(response, error, path);
    }
  }

  #route(request: IncomingMessage, response: GatewayResponse, path: ApiPath): void {
    if (path.path === "/healthz") {
      const records = !this.#calls.journal.hasFailed;
      const seals = this.#sealing.isWorking;
      const ok = records && seals;
      sendJson(response, ok ? 200 : 503, ok ? { ok } : { ok, records, seals });
      return;
    }
    if (!this.#hosts.isServed(request.headers.host))
      throw new HttpRefusal(
        421,
        "wrong-host",
        "the gateway is not known by the name in the Host header. Add it to `listen.names`, or use the address.",
      );
    const caller = this.#gatekeeper.admit(request.headers, path);
    const failed = (error: unknown) => this.#refuse(response, error, path, caller.rollout);
    if (request.method === "GET") {
      const get = () => this.#control.get(response, path, caller);
      this.#byOwner(request, response, { path, caller, body: NOTHING, answer: get, failed });
      return;
    }
    if (request.method !== "POST")
      throw new HttpRefusal(405, "method", `${request.method} is not spoken here.`);
    const done = (body: Buffer) => {
      const answer = () => {
        const dialect = dialectAt(path.path);
        if (dialect !== undefined) this.#call(request, response, { path, caller, body, dialect, failed });
        else this.#hold(this.#control.post(request, response, { path, caller, body }).catch(failed));
      };
      this.#byOwner(request, response, { path, caller, body, answer, failed });
    };
    const { requestBytes: limit, inFlightBytes } = this.#options.config.limits;
    const hold = (bytes: number) => {
      if (this.#heldBytes + bytes > inFlightBytes) return false;
      this.#heldBytes += bytes;
      response.heldBytes = (response.heldBytes ?? 0) + bytes;
      return true;
    };
    readBody(request, { limit, hold, done, failed });
  }

  /** Answers, or passes the request on to the gateway that owns its rollout. */
  #byOwner(
    request: IncomingMessage,
    response: GatewayResponse,
    { answer, failed, ...asking }: OwnedRequest,
  ): void {
    const at = (owner: string | undefined) =>
      owner === undefined ? answer() : this.#peers.forward(owner, request, { response, body: asking.body });
    try {
      const owner = this.#peers.ownerOf({ ...asking, request });
      if (owner === undefined) answer();
      else this.#hold(Promise.resolve(owner).then(at).catch(failed));
    } catch (error) {
      failed(error);
    }
  }

  /** A stop waits for it, also when whoever asked has left. */
  #hold(post: Promise<void>): void {
    this.#posts.add(post);
    void post.finally(() => this.#posts.delete(post));
  }

  #call(
    { rawHeaders }: IncomingMessage,
    response: ServerResponse,
    {
      path,
      caller,
      body,
      dialect,
      failed,
    }: {
      path: ApiPath;
      caller: Caller;
      body: Buffer;
      dialect: Dialect;
      failed: (error: unknown) => void;
    },
  ): void {
    const request = dialect.readRequest(parseBody(body));
    if (request !== undefined && request.model.length > MAX_NAME)
      throw new HttpRefusal(400, "name-too-long", `the model's name is longer than ${MAX_NAME} characters.`);
    if (request === undefined)
      throw new HttpRefusal(
        400,
        "bad-request",
        `the body is not a request of ${path.path}: model or messages are missing.`,
      );
    // A name that was not heard before is the client's own words, and is recorded.
    if (!this.#calls.routes.isFamiliar(request.model)) refuseSecrets({ model: request.model }, this.#redact);
    const mayCostUsd = () =>
      reservationUsd(request, {
        bodyBytes: body.length,
        price: this.#calls.routes.dearest(request.model),
      });
    const embed = this.#calls.routes.isAlias(request.model) ? this.#embed : undefined;
    // The endpoint sees what is recorded, and what policies are trained on: no secrets.
    const prompt = embed && promptOfMessages(redactValue(request.messages as Json[], this.#redact) as Json[]);
    // A reply that could not be recorded would be paid for and not delivered.
    if (this.#calls.journal.hasFailed) throw cannotRecord();
    const rollout =
      caller.rollout === undefined
        ? this.#rollouts.openSingle()
        : this.#rollouts.enter(caller.rollout, mayCostUsd);
    const below = path.path.slice("/v1".length) + path.query;
    const call = new ModelCall({ dialect, body, rawHeaders, path: below, rollout, response }, this.#calls);
    if (embed === undefined || prompt === undefined) {
      call.start(request);
      return;
    }
    const start = (vectors: PromptVectors | undefined) =>
      response.destroyed ? call.leave() : call.start(request, vectors);
    const leave = (error: unknown) => {
      call.leave();
      throw error;
    };
    this.#hold(embed(prompt).then(start, leave).catch(failed));
  }

  #refuse(response: ServerResponse, error: unknown, { path }: ApiPath, rollout?: string): void {
    const refusal = refusalFor(error);
    const dialect = dialectAt(path);
    if (dialect !== undefined) this.#tellRefusal(refusal, path, rollout);
    if (refusal !== error && refusal.status >= 500) this.#calls.log(`${path}: ${reasonOf(error)}`);
    this.#metrics.count("rollbook_gateway_refusals_total", { code: refusal.code });
    if (response.headersSent) {
      response.destroy();
      return;
    }
    const body = (dialect?.errorBody ?? openAiError)(refusal);
    // What is left of the request is not read; the connection cannot be used again.
    const isUnread = refusal.code === "too-large" || refusal.code === "too-much-in-flight";
    const headers = isUnread ? { connection: "close", ...refusal.headers } : refusal.headers;
    sendJson(response, refusal.status, body, headers);
  }

  /** A refused call is in no record: the listener and the owner of its rollout hear of it. */
  #tellRefusal({ status, code, message: said }: HttpRefusal, path: string, rollout?: string): void {
    const message = redactText(said, this.#redact);
    if (rollout !== undefined) this.#rollouts.refused(rollout, `${status} ${message}`);
    const atMs = this.#options.clock.nowMs();
    this.#calls.tell?.({ kind: "refusal", atMs, path, ...given({ rollout }), status, code, message });
  }
}

interface OwnedRequest {
  readonly path: ApiPath;
  readonly caller: Caller;
  readonly body: Buffer;
  /** This gateway's own answer. */
  readonly answer: () => void;
  readonly failed: (error: unknown) => void;
}

const NOTHING = Buffer.alloc(0);

function tellClosed(tell: TellEvent, clock: Clock): NonNullable<RolloutsOptions["onClosed"]> {
  return ({ id, opening, promptTokens, completionTokens, costUsd }, { ending, calls, content, envelope }) =>
    tell({
      ...{
        kind: "rollout",
        atMs: clock.nowMs(),
        rollout: id,
        task: opening.task.id,
        openedAtMs: opening.atMs,
      },
      ...{ ending: ending.kind, calls, promptTokens, completionTokens, costUsd },
      ...(ending.kind === "failed" ? { owner: ending.owner } : {}),
      ...given({ content, envelope }),
    });
}

/** Keys that stand in the configuration itself. */
function headerSecrets({ upstreams }: GatewayConfig): string[] {
  const all = Object.values(upstreams).flatMap(({ headers }) => Object.entries(headers));
  return all
    .filter(([name, value]) => isCredentialHeader(name.toLowerCase()) && !PLACEHOLDER_KEYS.has(value))
    .map(([, value]) => value.replace(/^(?:Bearer|Basic|Token)\s+/i, ""));
}

function openUpstreams(
  { config, clock, rng, local }: GatewayOptions,
  keys: ReadonlyMap<string, string>,
  metrics: Metrics,
): Map<string, Upstream> {
  const make = ([name, each]: [string, GatewayConfig["upstreams"][string]]): [string, Upstream] => {
    const onRetry = () => metrics.count("rollbook_gateway_retries_total", { upstream: name });
    const options = { key: keys.get(name), clock, rng: rng.split(name), onRetry, local };
    return [name, new Upstream(name, each, options)];
  };
  return new Map(Object.entries(config.upstreams).map(make));
}

function refusalFor(error: unknown): HttpRefusal {
  if (error instanceof HttpRefusal) return error;
  if (isRollbookError(error, "bad-id"))
    return new HttpRefusal(400, error.code, error.message, { cause: error });
  if (isDiskFailure(error)) return cannotRecord(error);
  // The router's constraints leave nothing to choose.
  if (isRollbookError(error, "no-candidate"))
    return new HttpRefusal(422, error.code, error.message, { cause: error });
  const said = "the gateway failed; its log says how.";
  return new HttpRefusal(500, "internal", said, { retry: true, cause: error });
}

function ignore(): void {}
