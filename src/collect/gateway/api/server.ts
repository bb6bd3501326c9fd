/** The gateway as an HTTP server: checks the caller and passes each request to the part that answers it. In: the
 *  options, the result of recovery. Out: a listening server that records, and its orderly stop. Model calls start in
 *  call-starter.ts; control-api.ts answers everything else. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { reasonOf } from "../../../base/index.ts";
import { listenOn } from "../../listen.ts";
import type { CallDesk } from "../../rollout-desk.ts";
import { estimateAgain } from "../call/index.ts";
import { dialectAt } from "../dialects/index.ts";
import { JournalReader } from "../journal/index.ts";
import type { Recovered } from "../rollouts/index.ts";
import { HttpRefusal, type ReplySink, readBody } from "../wire/index.ts";
import { type ApiPath, parsePath } from "./api-path.ts";
import { sendJson } from "./control-api.ts";
import { DirectCalls } from "./direct-calls.ts";
import type { Gateway, GatewayOptions } from "./gateway-options.ts";
import { type GatewayFindings, type GatewayParts, makeParts } from "./gateway-parts.ts";

const IDLE_CHECK_MS = 5_000;
/** Share of the stop time for calls in progress. */
const CALLS_SHARE = 0.6;
/** Milliseconds of the stop time for the last writes. */
const END_MS = 500;
/** Longer than the keep-alive of common client pools, so that clients close first. */
const KEEP_ALIVE_MS = 75_000;

/** A response, and the bytes reserved for its request until the response is sent. */
type GatewayResponse<Response extends ReplySink = ServerResponse> = Response & { heldBytes?: number };

export class GatewayServer {
  readonly #options: GatewayOptions;
  readonly #server: Server;
  readonly #parts: GatewayParts;
  readonly #found: Recovered;
  readonly #directory: string;
  #recovered: string[] = [];
  #idleTimer: NodeJS.Timeout | undefined;
  #active = 0;
  /** Answers of the gateway itself that are still in progress. */
  readonly #posts = new Set<Promise<unknown>>();
  readonly #direct: DirectCalls;
  #stopping = false;
  readonly #embedding = new AbortController();
  readonly #onClose: (this: GatewayResponse<ReplySink>) => void;
  /** Bytes of request bodies that are being read, or whose calls are in progress. */
  #heldBytes = 0;

  constructor(options: GatewayOptions, found: GatewayFindings) {
    this.#options = options;
    this.#found = found.recovered;
    this.#directory = found.directory;
    const facts = { active: () => this.#active, embedding: this.#embedding.signal };
    this.#parts = makeParts(options, found, facts);
    const server = this;
    this.#onClose = function (this: GatewayResponse<ReplySink>) {
      server.#active--;
      server.#heldBytes -= this.heldBytes ?? 0;
    };
    this.#direct = new DirectCalls({
      ...this.#parts,
      requestBytes: options.config.limits.requestBytes,
      begin: (reply, bytes) => {
        this.#active++;
        reply.on("close", () => this.#onClose.call(reply));
        return this.#holdBytes(reply, bytes);
      },
      hold: (work) => this.#hold(work),
    });
    this.#server = createServer(
      { maxHeaderSize: options.config.limits.headerBytes, keepAliveTimeout: KEEP_ALIVE_MS, noDelay: true },
      (request, response) => this.#serve(request, response),
    );
  }

  async start(): Promise<void> {
    const { config } = this.#options;
    const { routes, rollouts } = this.#parts.calls;
    const journal = new JournalReader(this.#directory);
    try {
      estimateAgain(this.#found.open, { journal, routes, limits: config.limits });
    } finally {
      journal.close();
    }
    await rollouts.adopt(this.#found);
    await this.#readyRouters();
    this.#recovered = rollouts.openIds;
    await listenOn(this.#server, config.listen);
    const everyMs = Math.min(IDLE_CHECK_MS, Math.ceil(config.rollouts.idleMs / 4));
    this.#idleTimer = setInterval(() => {
      rollouts.sealIdle().catch(ignore); // already logged with the rollout's name
    }, everyMs).unref();
  }

  /** Loads the routers of rollouts that an earlier run left open. After a failure the next call retries. */
  async #readyRouters(): Promise<void> {
    const { routes, rollouts, log } = this.#parts.calls;
    for (const router of rollouts.namedRouters)
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
      sealIdle: () => this.#parts.calls.rollouts.sealIdle(),
      close: async (graceMs = 10_000, callsMs = CALLS_SHARE * graceMs) => {
        await this.#stop(graceMs, callsMs).finally(release);
      },
    };
  }

  #desk(): CallDesk {
    const { control, calls } = this.#parts;
    const held = <T>(work: Promise<T>): Promise<T> => {
      this.#hold(work.then(ignore, ignore));
      return work;
    };
    return {
      open: (opening) => held(control.open(opening)),
      status: (rollout) => calls.rollouts.status(rollout),
      close: (rollout, closing) => held(control.close(rollout, closing)),
      call: (call) => this.#direct.call(call),
    };
  }

  /** Releases the parts after a failed start. */
  async abandon(): Promise<void> {
    await this.#parts.calls.rollouts.settle();
    await this.#parts.sealing.close();
    await this.#closeUpstreams();
  }

  async #stop(graceMs: number, callsMs: number): Promise<void> {
    const { sealing, calls } = this.#parts;
    this.#stopping = true;
    clearInterval(this.#idleTimer);
    const late = setTimeout(() => void sealing.abandon(), graceMs - END_MS);
    const silent = Promise.all([new Promise((done) => this.#server.close(done)), this.#direct.stop()]);
    this.#server.closeIdleConnections();
    const cut = setTimeout(() => {
      this.#server.closeAllConnections();
      this.#direct.cut();
    }, callsMs);
    await silent;
    clearTimeout(cut);
    // Cut connections notify their calls in the next turn. Any other call ends when its upstream is closed.
    for (const _ of [1, 2]) await new Promise(setImmediate);
    this.#embedding.abort();
    await this.#closeUpstreams();
    await calls.rollouts.quiet();
    await Promise.allSettled(this.#posts);
    await calls.rollouts.settle();
    await sealing.close();
    clearTimeout(late);
    await this.#found.journal.close();
    await this.#options.book.flush();
  }

  async #closeUpstreams(): Promise<void> {
    const { calls, peers } = this.#parts;
    await Promise.all([...calls.upstreams.values(), peers].map((each) => each.close()));
  }

  #serve(request: IncomingMessage, response: GatewayResponse): void {
    this.#active++;
    response.on("close", this.#onClose);
    // A broken socket is not an error of the gateway. Its call gets the "close" event.
    response.on("error", ignore);
    if (this.#stopping) response.setHeader("connection", "close");
    const path = parsePath(request.url ?? "/");
    try {
      this.#route(request, response, path);
    } catch (error) {
      this.#parts.refuse(response, error, path);
    }
  }

  #route(request: IncomingMessage, response: GatewayResponse, path: ApiPath): void {
    const { hosts, gatekeeper, peers, control, startCall, refuse } = this.#parts;
    if (path.path === "/healthz") {
      this.#answerHealth(response);
      return;
    }
    if (!hosts.isServed(request.headers.host))
      throw new HttpRefusal(
        421,
        "wrong-host",
        "the gateway is not known by the name in the Host header. Add it to `listen.names`, or use the address.",
      );
    const caller = gatekeeper.authenticate(request.headers, path);
    const failed = (error: unknown) => refuse(response, error, path, caller.rollout);
    const byOwner = (body: Buffer, answer: () => Promise<void> | undefined) => {
      try {
        const answering = peers.byOwner({ request, response, path, caller, body }, answer);
        if (answering !== undefined) this.#hold(answering.catch(failed));
      } catch (error) {
        failed(error);
      }
    };
    if (request.method === "GET") {
      byOwner(NOTHING, () => control.get(response, path, caller));
      return;
    }
    if (request.method !== "POST")
      throw new HttpRefusal(405, "method", `${request.method} is not spoken here.`, {
        headers: { allow: "GET, POST" },
      });
    const done = (body: Buffer) => {
      const dialect = dialectAt(path.path);
      byOwner(body, () =>
        dialect === undefined
          ? control.post(request, response, { path, caller, body })
          : startCall({ dialect, path, caller, body, rawHeaders: request.rawHeaders, response }),
      );
    };
    const { requestBytes: limit } = this.#options.config.limits;
    const hold = (bytes: number) => this.#holdBytes(response, bytes);
    readBody(request, { limit, hold, done, failed });
  }

  #holdBytes(response: GatewayResponse<ReplySink>, bytes: number): boolean {
    if (this.#heldBytes + bytes > this.#options.config.limits.inFlightBytes) return false;
    this.#heldBytes += bytes;
    response.heldBytes = (response.heldBytes ?? 0) + bytes;
    return true;
  }

  #answerHealth(response: ServerResponse): void {
    const records = !this.#found.journal.hasFailed;
    const seals = this.#parts.sealing.isWorking;
    const ok = records && seals;
    sendJson(response, ok ? 200 : 503, ok ? { ok } : { ok, records, seals });
  }

  /** Makes a stop wait for the work, even if the client has left. */
  #hold(post: Promise<unknown>): void {
    this.#posts.add(post);
    void post.finally(() => this.#posts.delete(post));
  }
}

const NOTHING = Buffer.alloc(0);

function ignore(): void {}
