/** One model call, from the request to the delivery mark: choose → send → pass on → record → release the last byte.
 *  In: a parsed request and the client's response. Out: a recorded call, whatever happened on the way.
 *  The last bytes of a reply are not released before its record is durable (unless recording is async). */
import type { ServerResponse } from "node:http";
import type { Clock } from "../../base/clock.ts";
import { type RollbookError, reasonOf } from "../../base/errors.ts";
import type { Id } from "../../base/ids.ts";
import type { Step } from "../../contract/index.ts";
import type { GatewayConfig } from "./config.ts";
import type { Dialect, ReplyFacts, RequestFacts } from "./dialects/dialect.ts";
import type { Place } from "./message-tree.ts";
import type { Metrics } from "./metrics.ts";
import type { CallOutcome, OpenRollout } from "./open-rollout.ts";
import { passedHeaders, returnedHeaders, rewrittenBody } from "./outgoing.ts";
import type { PreparedRequest, Recorder } from "./recorder.ts";
import { HttpRefusal } from "./refusal.ts";
import { JsonReader, type ReplyReader, SseReader } from "./reply-reader.ts";
import type { Rollouts } from "./rollouts.ts";
import type { Routes, Target } from "./routes.ts";
import type { Exchange, Receiver, ReplyHeaders, Upstream } from "./upstream.ts";

/** What every call of a gateway shares. */
export interface CallContext {
  readonly config: GatewayConfig;
  readonly clock: Clock;
  /** A steady clock in milliseconds, for durations. */
  readonly steadyMs: () => number;
  readonly recorder: Recorder;
  readonly rollouts: Rollouts;
  readonly routes: Routes;
  readonly upstreams: ReadonlyMap<string, Upstream>;
  readonly metrics: Metrics;
  readonly record: "durable" | "async";
  /** For what nobody else will hear of. */
  readonly log: (line: string) => void;
}

export interface IncomingCall {
  readonly dialect: Dialect;
  readonly request: RequestFacts;
  readonly body: Buffer;
  readonly rawHeaders: readonly string[];
  /** Path and query below /v1. */
  readonly path: string;
  readonly rollout: OpenRollout;
  readonly response: ServerResponse;
}

const NO_REPLY: ReplyFacts = { messages: [] };
/** The status nginx gave to a client that left. */
const CLIENT_LEFT = 499;

export class ModelCall implements Receiver {
  readonly #in: IncomingCall;
  readonly #with: CallContext;
  readonly #index: number;
  readonly #startedAtMs: number;
  readonly #startMs: number;
  readonly #steps: Step[] = [];
  readonly #failed = new Set<string>();
  #stepFamily: Id | undefined;
  #candidate = "";
  #target!: Target;
  #sent: Buffer | undefined;
  #prepared: PreparedRequest | undefined;
  #place!: Place;
  #exchange: Exchange | undefined;
  #reader: ReplyReader | undefined;
  #status = 0;
  #firstByteMs: number | undefined;
  #over = false;

  constructor(incoming: IncomingCall, context: CallContext) {
    this.#in = incoming;
    this.#with = context;
    this.#startedAtMs = context.clock.nowMs();
    this.#startMs = context.steadyMs();
    this.#index = context.rollouts.begin(incoming.rollout);
  }

  /** Throws a refusal if nobody knows the model; then nothing has been sent. */
  start(): void {
    const { response } = this.#in;
    try {
      if (!this.#aim()) throw unknownModel(this.#in.request.model, this.#with.routes.names);
    } catch (error) {
      this.#with.rollouts.end(this.#in.rollout);
      throw error;
    }
    response.on("close", () => {
      if (!response.writableFinished) this.#clientLeft();
      else this.#in.rollout.mark(this.#index, "sent");
    });
    this.#send();
  }

  onStart(status: number, headers: ReplyHeaders): void {
    if (isProviderFault(status) && this.#failOver()) return;
    const { response, dialect } = this.#in;
    this.#status = status;
    this.#firstByteMs = this.#elapsedMs();
    const isStream = String(headers["content-type"] ?? "").startsWith("text/event-stream");
    this.#reader = isStream ? new SseReader(dialect) : new JsonReader(dialect);
    response.writeHead(status, this.#named(returnedHeaders(headers)));
    if (isStream) response.flushHeaders();
  }

  onData(chunk: Buffer): boolean {
    const reader = this.#reader!;
    const passed = reader.push(chunk);
    if (reader.bytes > this.#with.config.limits.responseBytes) {
      this.#exchange!.abort();
      this.#finish("cut", { reply: NO_REPLY, thenDestroy: true });
      return true;
    }
    if (passed === undefined || this.#in.response.write(passed)) return true;
    this.#in.response.once("drain", () => this.#exchange!.resume());
    return false;
  }

  onEnd(): void {
    const { complete } = this.#read();
    const outcome =
      this.#status >= 400 ? (isProviderFault(this.#status) ? "provider-failed" : "refused") : "answered";
    // A stream without its last event has been cut by somebody before us, however politely.
    this.#finish(outcome === "answered" && !complete ? "cut" : outcome, {});
  }

  onError(error: RollbookError): void {
    if (this.#status === 0) {
      if (this.#failOver()) return;
      this.#answer(refusalOf(error));
      return;
    }
    this.#finish("cut", { thenDestroy: true });
  }

  /** Picks a target; false if there is none (left). */
  #aim(): boolean {
    const { request, dialect, body } = this.#in;
    const { routes, upstreams } = this.#with;
    if (routes.isAlias(request.model)) {
      const isResting = (upstream: string) => upstreams.get(upstream)!.breaker.isOpen;
      const choice = routes.choose(request.model, request, {
        call: this.#index,
        failed: this.#failed,
        isResting,
      });
      if (choice === undefined) return false;
      this.#steps.push(choice.step);
      this.#stepFamily = choice.family;
      this.#target = choice.target;
      this.#candidate = choice.candidate;
    } else {
      const target = routes.named(request.model);
      if (target === undefined) return false;
      this.#target = target;
    }
    this.#sent = rewrittenBody(body, request, { dialect: dialect.name, target: this.#target });
    return true;
  }

  #send(): void {
    const { rawHeaders, path, body } = this.#in;
    this.#exchange = this.#with.upstreams
      .get(this.#target.upstream)!
      .send({ method: "POST", path, headers: passedHeaders(rawHeaders), body: this.#sent ?? body }, this);
    // While the upstream thinks, the request half is stored.
    this.#prepare();
  }

  #prepare(): PreparedRequest {
    if (this.#prepared === undefined) {
      this.#prepared = this.#with.recorder.prepare(this.#in.request);
      this.#place = this.#in.rollout.tree.ask(this.#index, this.#prepared.tree);
      this.#with.metrics.count("rollbook_gateway_drift_total", { drift: this.#place.drift });
    }
    return this.#prepared;
  }

  /** True if another candidate takes over. */
  #failOver(): boolean {
    if (this.#candidate === "" || this.#over) return false;
    this.#failed.add(this.#candidate);
    const before = this.#exchange;
    if (!this.#aim()) return false;
    before?.abort();
    this.#send();
    return true;
  }

  #clientLeft(): void {
    if (this.#over) {
      this.#in.rollout.mark(this.#index, "aborted");
      this.#with.metrics.count("rollbook_gateway_delivery_total", { delivery: "aborted" });
      return;
    }
    this.#exchange?.abort();
    this.#status = CLIENT_LEFT;
    this.#finish("disconnected", {});
  }

  /** An answer of our own: the upstream gave none. */
  #answer(refusal: HttpRefusal): void {
    const { response, dialect } = this.#in;
    this.#status = refusal.status;
    const body = Buffer.from(JSON.stringify(dialect.errorBody(refusal)));
    this.#reader = new JsonReader(dialect);
    this.#reader.push(body);
    const headers = { "content-type": "application/json", "content-length": String(body.length) };
    response.writeHead(refusal.status, this.#named({ ...headers, ...refusal.headers }));
    this.#finish("provider-failed", {});
  }

  #finish(outcome: CallOutcome, how: { reply?: ReplyFacts; thenDestroy?: boolean }): void {
    if (this.#over) return;
    this.#over = true;
    const release = () => this.#release(how.thenDestroy === true);
    if (this.#with.record === "async" && outcome === "answered") {
      release();
      setImmediate(() => this.#commit(outcome, how.reply).catch((error) => this.#lost(error)));
      return;
    }
    this.#commit(outcome, how.reply).then(release, (error) => this.#lost(error));
  }

  async #commit(outcome: CallOutcome, reply?: ReplyFacts): Promise<void> {
    const { rollout, dialect, body } = this.#in;
    const { recorder, metrics, rollouts } = this.#with;
    const durationMs = this.#elapsedMs();
    try {
      const prepared = this.#prepare();
      const read = this.#reader === undefined ? undefined : this.#read();
      const facts = reply ?? read?.reply ?? NO_REPLY;
      recorder.record({
        rollout,
        index: this.#index,
        place: this.#place,
        dialect: dialect.name,
        target: this.#target,
        prepared,
        body,
        sent: this.#sent,
        status: this.#status,
        reply: facts,
        replyDigest: read?.digest,
        outcome,
        steps: this.#steps,
        stepFamily: this.#stepFamily,
        startedAtMs: this.#startedAtMs,
        firstByteMs: this.#firstByteMs,
        durationMs,
      });
      const endMs = this.#with.steadyMs();
      await recorder.commit();
      metrics.observe("rollbook_gateway_commit_seconds", {}, (this.#with.steadyMs() - endMs) / 1000);
      this.#measure(outcome, facts, durationMs);
    } finally {
      rollouts.end(rollout);
    }
  }

  #release(destroy: boolean): void {
    const { response, rollout } = this.#in;
    if (response.destroyed) return;
    if (destroy) {
      rollout.mark(this.#index, "aborted");
      response.destroy();
      return;
    }
    response.end(this.#reader?.held());
    this.#with.metrics.count("rollbook_gateway_delivery_total", { delivery: "sent" });
  }

  /** What cannot be recorded is not delivered: the client sees a broken reply, not one that never happened. */
  #lost(error: unknown): void {
    this.#with.metrics.count("rollbook_gateway_record_failures_total");
    this.#with.log(`call ${this.#in.rollout.id}.${this.#index} could not be recorded: ${reasonOf(error)}`);
    this.#in.response.destroy();
  }

  #readOnce: ReturnType<ReplyReader["finish"]> | undefined;

  #read(): ReturnType<ReplyReader["finish"]> {
    this.#readOnce ??= this.#reader!.finish();
    return this.#readOnce;
  }

  #measure(outcome: CallOutcome, { usage }: ReplyFacts, durationMs: number): void {
    const { metrics, routes } = this.#with;
    // Names from the configuration only: a client must not be able to make series.
    const model = routes.isKnown(this.#in.request.model) ? this.#in.request.model : "other";
    metrics.call({
      upstream: this.#target.upstream,
      model,
      status: this.#status,
      outcome,
      durationMs,
      firstByteMs: this.#firstByteMs,
      usage,
    });
  }

  /** Adds which call of which rollout this is, and what was chosen for it. */
  #named(headers: Record<string, string | string[]>): Record<string, string | string[]> {
    const { headerId } = this.#in.rollout;
    headers["x-rollbook-rollout"] = headerId;
    headers["x-rollbook-call"] = `${headerId}.${this.#index}`;
    // An agent that wants to stay with what a router chose names it in its next call.
    if (this.#candidate !== "") headers["x-rollbook-model"] = this.#candidate;
    return headers;
  }

  #elapsedMs(): number {
    return Math.max(0, this.#with.steadyMs() - this.#startMs);
  }
}

function isProviderFault(status: number): boolean {
  return status >= 500 || status === 429 || status === 408;
}

function refusalOf(error: RollbookError): HttpRefusal {
  const status = error.code === "upstream-timeout" ? 504 : error.code === "upstream-resting" ? 503 : 502;
  return new HttpRefusal(status, error.code, error.message, {
    retry: true,
    fields: error.fields,
    cause: error,
  });
}

function unknownModel(model: string, names: readonly string[]): HttpRefusal {
  const known = names.length === 0 ? "none is configured" : names.slice(0, 20).join(", ");
  return new HttpRefusal(
    404,
    "model_not_found",
    `no model is called ${JSON.stringify(model.slice(0, 80))}; known: ${known}.`,
  );
}
