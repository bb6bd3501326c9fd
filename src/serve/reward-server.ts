/** Serves rewards over HTTP for slime's `--rm-type remote_rm`: POST {"prompt", "response", "label"}, answered by one
 *  number.
 *  In: a scorer. Out: a listening server with health and metrics. The response is used as the rollout's final state. A
 *  failed reward is an error of the request and never a number: a trainer must not learn from it. */
import { timingSafeEqual } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { isObject, type Json, parseJson, RollbookError, reasonOf } from "../base/index.ts";
import { HostCheck, isFromPage, LOOPBACK, listenOn } from "../collect/index.ts";
import { type RewardInput, type Scorer, totalOf } from "../collect/rollout/index.ts";

export interface RewardServer {
  readonly url: string;
  close(): Promise<void>;
}

export interface RewardServerOptions {
  readonly host?: string;
  /** Port; 0 selects a free one. */
  readonly port?: number;
  /** Clients send the token as a bearer token, or as the password of the URL. Required beyond loopback. */
  readonly token?: string;
  readonly timeoutMs?: number;
  /** Number of rewards computed at the same time; further requests wait. */
  readonly concurrency?: number;
}

const MAX_BODY = 16 * 1024 * 1024;

export async function serveRewards(scorer: Scorer, options: RewardServerOptions = {}): Promise<RewardServer> {
  const { host = "127.0.0.1", port = 0, token, timeoutMs = 60_000, concurrency = 32 } = options;
  if (token === undefined && !LOOPBACK.test(host))
    throw new RollbookError(
      "token-needed",
      { host },
      `${host} can be reached by others. Set a token (--token-env), or listen on 127.0.0.1.`,
    );
  const desk = new RewardDesk(scorer, { timeoutMs, concurrency });
  const hosts = token === undefined ? new HostCheck(host, []) : undefined;
  const server = createServer((request, response) => {
    if (hosts !== undefined && isFromPage(request.headers, hosts)) {
      const message = "requests of web pages, or for another Host, need a token. Set --token-env.";
      send(response, 403, { error: { message } });
      return;
    }
    desk.answer(request, response, token).catch((error: unknown) => {
      if (!response.headersSent) send(response, 500, { error: { message: reasonOf(error) } });
      else response.destroy();
    });
  });
  await listenOn(server, { host, port });
  const { port: bound } = server.address() as AddressInfo;
  return {
    url: `http://${host.includes(":") ? `[${host}]` : host}:${bound}`,
    close: () =>
      new Promise((done) => {
        server.close(() => done());
        server.closeAllConnections();
      }),
  };
}

type RewardOutcome = "ok" | "refused" | "unlabelled" | "failed" | "timeout";

/** Answers requests with bounded concurrency, and counts them. */
class RewardDesk {
  readonly #scorer: Scorer;
  readonly #limits: { timeoutMs: number; concurrency: number };
  readonly #counts = new Map<RewardOutcome, number>();
  readonly #waiting: (() => void)[] = [];
  #running = 0;
  #seconds = 0;

  constructor(scorer: Scorer, limits: { timeoutMs: number; concurrency: number }) {
    this.#scorer = scorer;
    this.#limits = limits;
  }

  async answer(request: IncomingMessage, response: ServerResponse, token: string | undefined): Promise<void> {
    const { method, url = "/" } = request;
    const [path] = url.split("?");
    if (method === "GET" && path === "/healthz")
      return send(response, 200, { ok: true, scorer: this.#scorer.digest });
    if (token !== undefined && !isToken(request.headers.authorization, token))
      return this.#refuse(response, 401, "the token is missing or wrong");
    if (method === "GET" && path === "/metrics") {
      response.writeHead(200, { "content-type": "text/plain; version=0.0.4" }).end(this.metrics());
      return;
    }
    if (method !== "POST")
      return this.#refuse(
        response,
        405,
        'POST {"prompt": …, "response": …, "label": …}, or GET /healthz, /metrics',
      );
    const body = await readBody(request);
    if (body === undefined) return this.#refuse(response, 413, `the body is larger than ${MAX_BODY} bytes`);
    const asked = readQuestion(body);
    if (typeof asked === "string") return this.#refuse(response, 400, asked);
    await this.#score(asked, response);
  }

  async #score(input: RewardInput, response: ServerResponse): Promise<void> {
    const started = performance.now();
    const gone = new AbortController();
    response.once("close", () => gone.abort());
    await this.#enter();
    try {
      if (gone.signal.aborted) return;
      const deadline = AbortSignal.timeout(this.#limits.timeoutMs);
      const reward = await Promise.race([
        this.#scorer.score(input, AbortSignal.any([gone.signal, deadline])).then(totalOf),
        new Promise<"timeout">((late) => deadline.addEventListener("abort", () => late("timeout"))),
      ]);
      if (reward === "timeout")
        return this.#end(response, "timeout", 504, `no reward within ${this.#limits.timeoutMs} ms`);
      if (reward === null)
        return this.#end(
          response,
          "unlabelled",
          422,
          "the reward gives no value for this response, and no value is not 0",
        );
      this.#count("ok");
      send(response, 200, reward);
    } catch (error) {
      this.#end(response, "failed", 500, `the reward ${this.#scorer.name} failed: ${reasonOf(error)}`);
    } finally {
      this.#seconds += (performance.now() - started) / 1000;
      this.#leave();
    }
  }

  metrics(): string {
    const lines = [...this.#counts].map(
      ([outcome, count]) => `rollbook_rewards_total{outcome="${outcome}"} ${count}`,
    );
    return [
      "# HELP rollbook_rewards_total Requests for a reward, by outcome.",
      "# TYPE rollbook_rewards_total counter",
      ...lines,
      "# HELP rollbook_reward_seconds_total Time from request to answer, waiting included.",
      "# TYPE rollbook_reward_seconds_total counter",
      `rollbook_reward_seconds_total ${this.#seconds}`,
      "# HELP rollbook_rewards_running Rewards that are being computed.",
      "# TYPE rollbook_rewards_running gauge",
      `rollbook_rewards_running ${this.#running}`,
      "",
    ].join("\n");
  }

  async #enter(): Promise<void> {
    if (this.#running >= this.#limits.concurrency) await new Promise<void>((go) => this.#waiting.push(go));
    else this.#running++;
  }

  /** Passes the slot to the next waiting request, if any. */
  #leave(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#running--;
    else next();
  }

  #refuse(response: ServerResponse, status: number, message: string): void {
    this.#end(response, "refused", status, message);
  }

  #end(response: ServerResponse, outcome: RewardOutcome, status: number, message: string): void {
    this.#count(outcome);
    send(response, status, { error: { message } });
  }

  #count(outcome: RewardOutcome): void {
    this.#counts.set(outcome, (this.#counts.get(outcome) ?? 0) + 1);
  }
}

/** Parses the question, or returns what is wrong with it. */
function readQuestion(body: Buffer): RewardInput | string {
  let asked: Json;
  try {
    asked = parseJson(body.toString("utf8"), "the body");
  } catch (error) {
    return reasonOf(error);
  }
  if (!isObject(asked) || typeof asked.response !== "string")
    return 'the body is not {"prompt": …, "response": "…", "label": …}; response is a text';
  const { prompt, response, label, metadata } = asked;
  return {
    task: {
      payload: isObject(metadata) ? metadata : {},
      ...(prompt === undefined ? {} : { prompt }),
      ...(label === undefined || label === null ? {} : { label }),
    },
    finalState: response,
    ending: { kind: "terminal" },
    claimed: null,
    metrics: {},
    durationMs: 0,
    attempt: 1,
  };
}

async function readBody(request: IncomingMessage): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > MAX_BODY) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function isToken(header: string | undefined, token: string): boolean {
  const [kind = "", value = ""] = (header ?? "").split(" ");
  const given = /^basic$/i.test(kind)
    ? Buffer.from(value, "base64")
        .toString("utf8")
        .replace(/^[^:]*:/, "")
    : value;
  const [a, b] = [Buffer.from(given), Buffer.from(token)];
  return a.length === b.length && timingSafeEqual(a, b);
}

function send(response: ServerResponse, status: number, value: unknown): void {
  if (response.destroyed) return;
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
}
