/** Requests that the gateway answers itself: rollouts, feedback, models, metrics. Token counting is passed to an
 *  upstream. In: a request and its caller. Out: the response, or a thrown refusal. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { resolve } from "node:path";
import type { Book } from "../../../store/index.ts";
import { passThrough, type Returned } from "../call/index.ts";
import { dialectAt, textAt } from "../dialects/index.ts";
import type { Rollouts } from "../rollouts/index.ts";
import type { Upstream } from "../upstream/index.ts";
import { HttpRefusal, parseBody, type ReplySink, textOfBody } from "../wire/index.ts";
import { type ApiPath, decodePart, upstreamPath } from "./api-path.ts";
import { decideRoute, type RouteDeps } from "./decide-route.ts";
import type { Caller } from "./identity.ts";
import { redactClosing, redactFeedback, redactOpening } from "./redact-requests.ts";
import { check, closeRequest, feedbackRequest, openRequest, splitCall } from "./requests.ts";

interface ControlApiOptions extends RouteDeps {
  readonly upstreams: ReadonlyMap<string, Upstream>;
  readonly returned: Returned;
  readonly maxErrorBytes: number;
  /** The book in which rollouts are sealed. */
  readonly book: Pick<Book, "id" | "root">;
  /** The API key of a rollout. */
  readonly keyFor: (rollout: string) => string;
  /** Metrics in the Prometheus text format. */
  readonly metrics: () => string;
}

export class ControlApi {
  readonly #deps: ControlApiOptions;

  constructor(options: ControlApiOptions) {
    this.#deps = options;
  }

  get(response: ServerResponse, { path }: ApiPath, caller: Caller): undefined {
    if (path === "/metrics") {
      requireOwner(caller);
      const text = this.#deps.metrics();
      response.writeHead(200, { "content-type": "text/plain; version=0.0.4" }).end(text);
      return;
    }
    if (path === "/v1/rollouts") {
      requireOwner(caller);
      sendJson(response, 200, { rollouts: this.#deps.rollouts.openRollouts });
      return;
    }
    const [, rollout] = /^\/v1\/rollouts\/([^/]+)$/.exec(path) ?? [];
    if (rollout !== undefined) {
      requireOwner(caller);
      sendJson(response, 200, this.#deps.rollouts.status(decodePart(rollout)));
      return;
    }
    if (path === "/v1/book") {
      requireOwner(caller);
      const { id, root } = this.#deps.book;
      sendJson(response, 200, { id, root: resolve(root) });
      return;
    }
    const { names } = this.#deps.routes;
    if (path === "/v1/models") {
      const data = names.map(modelEntry);
      sendJson(response, 200, {
        object: "list",
        data,
        has_more: false,
        first_id: names[0],
        last_id: names.at(-1),
      });
      return;
    }
    const [, name] = /^\/v1\/models\/(.+)$/.exec(path) ?? [];
    const model = name === undefined ? undefined : decodePart(name);
    if (model === undefined) throw isPosted(path) ? notGot(path) : nothingAt(path);
    if (!names.includes(model)) throw new HttpRefusal(404, "model_not_found", `no model is called ${model}.`);
    sendJson(response, 200, modelEntry(model));
  }

  async post(
    request: IncomingMessage,
    response: ServerResponse,
    { path, caller, body }: { path: ApiPath; caller: Caller; body: Buffer },
  ): Promise<void> {
    const [, closed] = CLOSE_PATH.exec(path.path) ?? [];
    if (path.path === "/v1/messages/count_tokens")
      return this.#countTokens(request, response, { path, body });
    if (path.path === "/v1/route") return this.#route(response, { caller, body });
    if (path.path !== "/v1/rollouts" && path.path !== "/v1/feedback" && closed === undefined)
      throw nothingAt(path.path);
    requireOwner(caller);
    const value = body.length === 0 ? {} : parseBody(body);
    if (path.path === "/v1/feedback") return sendJson(response, 200, await this.#addFeedback(value));
    if (closed !== undefined) return sendJson(response, 200, await this.close(decodePart(closed), value));
    const { created, ...opened } = await this.open(value);
    sendJson(response, created ? 201 : 200, opened);
  }

  async open(value: unknown): Promise<{ id: string; apiKey: string; basePath: string; created: boolean }> {
    const { redact, rollouts, routes, keyFor } = this.#deps;
    const opening = redactOpening(check(openRequest, value), redact);
    if (opening.router !== undefined) await routes.ready(opening.router);
    const wanted = Object.entries(opening).filter(([, each]) => each !== undefined);
    const { id, created } = await rollouts.open(Object.fromEntries(wanted));
    return { id, apiKey: keyFor(id), basePath: `/r/${encodeURIComponent(id)}`, created };
  }

  close(rollout: string, value: unknown): ReturnType<Rollouts["close"]> {
    const { redact, rollouts } = this.#deps;
    return rollouts.close(rollout, redactClosing(check(closeRequest, value), redact));
  }

  /** Adds an outcome to a rollout or to one of its calls, at any time. Before sealing, the outcome waits in the
   *  rollout's journal; after sealing it is a separate record. The gateway never invents an outcome: a rollout
   *  without one stays unlabelled. */
  #addFeedback(value: unknown): Promise<{ added: boolean }> {
    const { redact, rollouts } = this.#deps;
    const { call, rollout, ...given } = redactFeedback(check(feedbackRequest, value), redact);
    if (call === undefined) return rollouts.addFeedback(rollout!, given);
    const named = splitCall(call);
    return rollouts.addFeedback(named.rollout, { ...given, call: named.call });
  }

  /** Agents may request a route, as they may call models. */
  async #route(
    response: ServerResponse,
    { caller: { rollout }, body }: { caller: Caller; body: Buffer },
  ): Promise<void> {
    const decided = await decideRoute(this.#deps, textOfBody(body), { within: rollout });
    sendJson(response, 200, decided, { "x-rollbook-rollout": encodeURIComponent(decided.id) });
  }

  /** Token counting is not a call: it samples nothing and is not recorded. */
  #countTokens(
    request: IncomingMessage,
    response: ServerResponse,
    { path, body }: { path: ApiPath; body: Buffer },
  ): void {
    const model = textAt(parseBody(body), "model") ?? "";
    const target = this.#deps.routes.named(model);
    if (target === undefined)
      throw new HttpRefusal(404, "model_not_found", "no model of that name is known.");
    const upstream = this.#deps.upstreams.get(target.upstream)!;
    const { returned, maxErrorBytes: maxBytes } = this.#deps;
    const to = { upstream, model, target, body, path: upstreamPath(path) };
    passThrough({ ...to, request, response, returned, maxBytes });
  }
}

function requireOwner({ isOwner }: Caller): void {
  if (!isOwner)
    throw new HttpRefusal(
      403,
      "forbidden",
      "a rollout's key may only call models, count tokens, list models and ask for a route. Send an access token.",
    );
}

/** Has the fields of OpenAI and of Anthropic at once. */
function modelEntry(id: string) {
  return { id, object: "model", created: 0, owned_by: "rollbook", type: "model", display_name: id };
}

export function sendJson(
  response: ReplySink,
  status: number,
  value: unknown,
  headers: Readonly<Record<string, string>> = {},
): void {
  const body = Buffer.from(JSON.stringify(value));
  response.writeHead(status, {
    "content-type": "application/json",
    "content-length": body.length,
    ...headers,
  });
  response.end(body);
}

const CLOSE_PATH = /^\/v1\/rollouts\/([^/]+)\/close$/;
const POSTED = new Set(["/v1/route", "/v1/feedback", "/v1/messages/count_tokens"]);

/** True for paths that take POST only. */
function isPosted(path: string): boolean {
  return POSTED.has(path) || CLOSE_PATH.test(path) || dialectAt(path) !== undefined;
}

function notGot(path: string): HttpRefusal {
  return new HttpRefusal(405, "method", `${path} does not answer GET. Send POST.`, {
    headers: { allow: "POST" },
  });
}

/** Clients append the path of a call to their base URL, which ends in /v1. */
function nothingAt(path: string): HttpRefusal {
  const hint = path.startsWith("/v1/") ? "" : " The base URL of a client ends in /v1.";
  return new HttpRefusal(404, "not-found", `there is nothing at ${path}.${hint}`);
}
