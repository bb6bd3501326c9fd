/** One model call, from the request to the delivery mark: choose → send → pass on → journal → release the last byte.
 *  In: a parsed request and the client's response. Out: a call in the journal, whatever happened on the way.
 *  The last bytes of a reply are not released before it is durable (unless recording is async). What the call means
 *  for its rollout is found out later, from the journal. */
import type { ServerResponse } from "node:http";
import { type Clock, given, type Id, type RollbookError, reasonOf } from "../../../base/index.ts";
import type { DecisionToLog, PromptVectors } from "../../../policy/index.ts";
import type { GatewayConfig } from "../config.ts";
import {
  type Dialect,
  type FinishKind,
  finishKind,
  type RequestFacts,
  type TokenUsage,
} from "../dialects/index.ts";
import { type CallOutcome, type Journal, type OpenRollout, SOON_MS, type Waiter } from "../journal/index.ts";
import type { Metrics } from "../metrics.ts";
import type { RedactCall } from "../redact/index.ts";
import { isSingle, type Rollouts } from "../rollouts/index.ts";
import { digestBody } from "../sealing/index.ts";
import type { Exchange, Receiver, ReplyHeaders, Routes, Target, Upstream } from "../upstream/index.ts";
import { HttpRefusal, parseBody, type ReplyReader, readerOf } from "../wire/index.ts";
import { type CallEvent, type TellEvent, traceparentOf } from "./call-events.ts";
import type { TurnEnd } from "./end-of-tick.ts";
import { jsonBytes, partsToKeep } from "./journaled-bytes.ts";
import { passedHeaders, passedPath, type Returned, rewrittenBody, withLength } from "./outgoing.ts";
import { costUsd, estimateUsd } from "./prices.ts";

/** What every call of a gateway shares. */
export interface CallContext {
  readonly config: GatewayConfig;
  readonly clock: Clock;
  /** A steady clock in milliseconds, for durations. */
  readonly steadyMs: () => number;
  readonly journal: Journal;
  /** Undefined if nothing is to be redacted. */
  readonly redact: RedactCall | undefined;
  readonly returned: Returned;
  /** Bytes of replies that are passing or not recorded yet. */
  readonly replies: { heldBytes: number };
  readonly rollouts: Rollouts;
  readonly routes: Routes;
  readonly upstreams: ReadonlyMap<string, Upstream>;
  readonly metrics: Metrics;
  readonly record: "durable" | "async";
  /** When replies go out that wait for nothing. */
  readonly turnEnd: TurnEnd;
  /** For what nobody else will hear of. */
  readonly log: (line: string) => void;
  /** Undefined if nobody watches. */
  readonly tell: TellEvent | undefined;
}

export interface IncomingCall {
  readonly dialect: Dialect;
  /** What the client sent; it can be read as a request of the dialect. */
  readonly body: Buffer;
  readonly rawHeaders: readonly string[];
  /** Path and query below /v1. */
  readonly path: string;
  readonly rollout: OpenRollout;
  readonly response: ServerResponse;
}

const NONE: ReadonlySet<string> = new Set();
/** The status nginx gave to a client that left. */
const CLIENT_LEFT = 499;
/** Async recording waits for the disk, too, once this much is behind it. */
const MAX_BEHIND_BYTES = 64 * 1024 * 1024;
/** A longer reply in one piece is not parsed for a listener: calls would wait for it. */
const MAX_TOLD_BYTES = 1024 * 1024;

export class ModelCall implements Receiver, Waiter {
  readonly #in: IncomingCall;
  readonly #with: CallContext;
  readonly #index: number;
  readonly #startedAtMs: number;
  readonly #startMs: number;
  readonly #decided: DecisionToLog[] = [];
  #failed: Set<string> | undefined;
  #vectors: PromptVectors | undefined;
  #stepFamily: Id | undefined;
  #candidate = "";
  #target!: Target;
  /** As the client says it. */
  #asked = "";
  /** Names from the configuration only: a client must not be able to make series. */
  #modelLabel = "";
  #sent: Buffer | undefined;
  #exchange: Exchange | undefined;
  #reader: ReplyReader | undefined;
  #status = 0;
  #firstByteMs: number | undefined;
  #tooLarge = false;
  /** Of a reply that goes out once it is whole. */
  #heldHeaders: string[] | undefined;
  #fault: string | undefined;
  #over = false;
  #durationMs = 0;
  #isToDestroy = false;
  #isReleased = false;

  constructor(incoming: IncomingCall, context: CallContext) {
    this.#in = incoming;
    this.#with = context;
    this.#startedAtMs = context.clock.nowMs();
    this.#startMs = context.steadyMs();
    this.#index = context.rollouts.begin(incoming.rollout);
  }

  /** `request` is what the body says, `vectors` those of its prompt, where the router reads them. Throws a refusal if
   *  nobody knows the model; then nothing has been sent. */
  start(request: RequestFacts, vectors?: PromptVectors): void {
    const { response } = this.#in;
    this.#vectors = vectors;
    try {
      if (!this.#aim(request)) throw unknownModel(request.model, this.#with.routes.names);
    } catch (error) {
      this.#with.rollouts.takeBack(this.#in.rollout);
      throw error;
    }
    response.on("close", () => this.#closed());
    this.#send();
  }

  /** Instead of `start`, where the client has left. */
  leave(): void {
    this.#with.rollouts.takeBack(this.#in.rollout);
  }

  onStart(status: number, headers: ReplyHeaders): void {
    if (isProviderFault(status) && this.#failOver(`status ${status}`)) return;
    const { response, dialect } = this.#in;
    this.#status = status;
    this.#firstByteMs = this.#elapsedMs();
    const isStream = String(headers["content-type"] ?? "").startsWith("text/event-stream");
    const { returned, redact } = this.#with;
    this.#reader = readerOf(isStream ? "sse" : "json", dialect, { joinsTexts: redact !== undefined });
    const passed = this.#named(returned.headers(headers));
    if (returned.isHeld(status)) {
      this.#heldHeaders = passed;
      return;
    }
    response.writeHead(status, passed);
    if (isStream) response.flushHeaders();
  }

  onData(chunk: Buffer): boolean {
    const reader = this.#reader!;
    const passed = reader.push(chunk);
    const { replies, config } = this.#with;
    const { responseBytes, inFlightBytes, callMs } = config.limits;
    replies.heldBytes += chunk.length;
    if (reader.bytes > responseBytes || replies.heldBytes > inFlightBytes || this.#elapsedMs() > callMs) {
      this.#exchange!.abort();
      this.#tooLarge = reader.bytes > responseBytes || replies.heldBytes > inFlightBytes;
      this.#finish("cut", { thenDestroy: true });
      return true;
    }
    if (passed === undefined || this.#heldHeaders !== undefined || this.#in.response.write(passed))
      return true;
    this.#in.response.once("drain", () => this.#exchange!.resume());
    return false;
  }

  onEnd(): void {
    const { complete } = this.#peek();
    const outcome =
      this.#status >= 400 ? (isProviderFault(this.#status) ? "provider-failed" : "refused") : "answered";
    // A stream without its last event has been cut by somebody before us, however politely.
    this.#finish(outcome === "answered" && !complete ? "cut" : outcome, {});
  }

  onError(error: RollbookError): void {
    if (this.#status === 0) {
      if (this.#failOver(error.message)) return;
      this.#fault = error.message;
      this.#answer(refusalOf(error));
      return;
    }
    this.#finish("cut", { thenDestroy: true });
  }

  /** Picks a target; false if there is none (left). */
  #aim(request: RequestFacts): boolean {
    const { dialect, body } = this.#in;
    const { routes, upstreams } = this.#with;
    this.#asked = request.model;
    if (routes.isAlias(request.model)) {
      const isResting = (upstream: string) => upstreams.get(upstream)!.breaker.isOpen;
      const choice = routes.choose(request.model, request, {
        rollout: this.#in.rollout.id,
        call: this.#index,
        router: this.#in.rollout.opening.router,
        requestBytes: body.length,
        failed: this.#failed ?? NONE,
        isResting,
        vectors: this.#vectors,
      });
      if (choice === undefined) return false;
      this.#decided.push(choice.decided);
      this.#stepFamily = choice.family;
      this.#target = choice.target;
      this.#candidate = choice.candidate;
      this.#modelLabel = request.model;
    } else {
      const target = routes.named(request.model);
      if (target === undefined) return false;
      this.#target = target;
      this.#modelLabel = target.label;
    }
    this.#sent = rewrittenBody(body, request, { dialect: dialect.name, target: this.#target });
    return true;
  }

  #send(): void {
    const { rawHeaders, path, body } = this.#in;
    this.#exchange = this.#with.upstreams.get(this.#target.upstream)!.send(
      {
        method: "POST",
        path: passedPath(path),
        headers: passedHeaders(rawHeaders),
        body: this.#sent ?? body,
      },
      this,
    );
  }

  /** True if another candidate takes over. */
  #failOver(fault: string): boolean {
    if (this.#candidate === "" || this.#over) return false;
    const from = this.#candidate;
    this.#failed = new Set(this.#failed).add(this.#candidate);
    const before = this.#exchange;
    try {
      if (!this.#aim(this.#readAgain())) return false;
    } catch (error) {
      // The client gets what the upstream said: a router that refuses what remains has nothing better.
      this.#with.log(`call ${this.#in.rollout.id}.${this.#index} has no other candidate: ${reasonOf(error)}`);
      return false;
    }
    before?.abort();
    this.#with.tell?.({ kind: "failover", ...this.#place(), from, to: this.#candidate, fault });
    this.#send();
    return true;
  }

  /** The connection has taken the reply, or will not take any more of it. */
  #closed(): void {
    const { response, rollout } = this.#in;
    const delivery = response.writableFinished ? "sent" : "aborted";
    this.#with.metrics.delivered(delivery);
    if (this.#over) {
      if (!this.#isToDestroy) rollout.mark(this.#index, delivery);
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
    this.#reader = readerOf("json", dialect);
    this.#reader.push(body);
    this.#with.replies.heldBytes += body.length;
    const headers = { "content-type": "application/json", "content-length": String(body.length) };
    response.writeHead(
      refusal.status,
      this.#named(Object.entries({ ...headers, ...refusal.headers }).flat()),
    );
    this.#finish("provider-failed", {});
  }

  #finish(outcome: CallOutcome, { thenDestroy = false }: { thenDestroy?: boolean }): void {
    if (this.#over) return;
    this.#over = true;
    this.#isToDestroy = thenDestroy;
    const { record, journal } = this.#with;
    try {
      this.#journal(outcome);
    } catch (error) {
      this.lost(error);
      return;
    }
    const isAhead = record === "async" && outcome === "answered" && journal.pendingBytes < MAX_BEHIND_BYTES;
    if (!isAhead) {
      journal.whenDurable(this);
      return;
    }
    this.#with.turnEnd.do(() => this.#release());
    journal.whenDurable(this, SOON_MS);
  }

  durable(): void {
    this.#with.metrics.committed((this.#elapsedMs() - this.#durationMs) / 1000);
    this.#release();
    this.#end();
  }

  #end(): void {
    this.#with.replies.heldBytes -= this.#reader?.bytes ?? 0;
    this.#with.rollouts.end(this.#in.rollout, this.#index);
  }

  /** What cannot be recorded is not delivered: the client sees a broken reply, not one that never happened. */
  lost(error: unknown): void {
    this.#with.metrics.count("rollbook_gateway_record_failures_total");
    this.#with.log(`call ${this.#in.rollout.id}.${this.#index} could not be recorded: ${reasonOf(error)}`);
    this.#in.response.destroy();
    this.#end();
  }

  /** Hands the call to the journal and to the counters. */
  #journal(outcome: CallOutcome): void {
    const { rollout, dialect } = this.#in;
    const durationMs = this.#elapsedMs();
    this.#durationMs = durationMs;
    const usage = this.#reader === undefined || this.#tooLarge ? undefined : this.#peek().usage;
    const parts = partsToKeep(
      {
        request: () => this.#readAgain(),
        body: this.#in.body,
        reader: this.#reader,
        tooLarge: this.#tooLarge,
      },
      this.#with.redact,
    );
    const { price, capture } = this.#target;
    const cost = usage === undefined || price === undefined ? undefined : costUsd(usage, price);
    const sent = this.#sent;
    // What follows from the kept body and the target is hashed when the rollout is sealed.
    const isRenamed = sent !== undefined && capture === undefined && parts.requestForm === "body";
    const place = this.#with.journal.called(
      {
        index: this.#index,
        earlier: rollout.calls.size,
        dialect: dialect.name,
        status: this.#status,
        outcome: parts.cut === true && outcome === "answered" ? "cut" : outcome,
        decided: this.#decided,
        stepFamily: this.#stepFamily,
        startedAtMs: this.#startedAtMs,
        firstByteMs: this.#firstByteMs,
        durationMs,
        usage,
        costUsd: cost,
        deliveries: rollout.takeDeliveries(),
        isRenamed,
        sentDigest: sent === undefined || isRenamed ? undefined : digestBody(sent),
      },
      { rollout: rollout.idBytes, target: this.#target.factsBytes },
      parts,
    );
    const estimatedUsd = cost === undefined ? this.#estimateUsd() : undefined;
    rollout.addCall(place, { index: this.#index, usage, costUsd: cost, estimatedUsd });
    this.#measure(outcome, usage, cost);
  }

  #estimateUsd(): number | undefined {
    const { price } = this.#target;
    const reader = this.#reader;
    // Who leaves has had the upstream work all the same.
    const hasLeft = this.#status === CLIENT_LEFT;
    if (price === undefined || (!hasLeft && (reader === undefined || this.#status >= 400))) return undefined;
    const said =
      reader === undefined
        ? 0
        : this.#tooLarge
          ? reader.bytes
          : jsonBytes(reader.finish().reply.messages).length;
    return estimateUsd({ asked: this.#in.body.length, said }, price);
  }

  #release(): void {
    if (this.#isReleased) return;
    this.#isReleased = true;
    const { response, rollout } = this.#in;
    if (response.destroyed) return;
    if (this.#isToDestroy) {
      rollout.mark(this.#index, "aborted");
      response.destroy();
      return;
    }
    if (this.#heldHeaders === undefined) {
      response.end(this.#reader?.held());
      return;
    }
    const body = this.#with.returned.body(this.#reader!.chunks);
    response.writeHead(this.#status, withLength(this.#heldHeaders, body.length));
    response.end(body);
  }

  #peeked: ReturnType<ReplyReader["peek"]> | undefined;

  #peek(): ReturnType<ReplyReader["peek"]> {
    this.#peeked ??= this.#reader!.peek();
    return this.#peeked;
  }

  #measure(outcome: CallOutcome, usage: TokenUsage | undefined, costUsd: number | undefined): void {
    this.#with.metrics.call({
      upstream: this.#target.upstream,
      model: this.#modelLabel,
      status: this.#status,
      outcome,
      firstByteMs: this.#firstByteMs,
      durationMs: this.#durationMs,
      usage,
      costUsd,
    });
    this.#with.tell?.(this.#event(outcome, usage, costUsd));
  }

  #event(outcome: CallOutcome, usage: TokenUsage | undefined, costUsd: number | undefined): CallEvent {
    const { upstream, model: served, revision } = this.#target;
    const { dialect, rollout, rawHeaders } = this.#in;
    return {
      ...{ kind: "call", ...this.#place(), dialect: dialect.name, model: this.#asked, upstream, served },
      ...{ status: this.#status, outcome, durationMs: this.#durationMs },
      ...(this.#candidate === "" ? {} : { candidate: this.#candidate }),
      ...(isSingle(rollout) ? { single: true } : {}),
      ...given({ firstByteMs: this.#firstByteMs, costUsd, fault: this.#fault, revision }),
      ...given({ promptTokens: usage?.promptTokens, completionTokens: usage?.completionTokens }),
      ...given({ finish: this.#finishTold(), route: this.#route(), traceparent: traceparentOf(rawHeaders) }),
    };
  }

  #finishTold(): FinishKind | undefined {
    const reader = this.#reader;
    if (reader === undefined || this.#tooLarge || this.#status >= 400) return undefined;
    if (reader.form === "json" && reader.bytes > MAX_TOLD_BYTES) return undefined;
    const { finishReason } = reader.finish().reply;
    return finishReason === undefined ? undefined : finishKind(finishReason, this.#in.dialect);
  }

  #route(): CallEvent["route"] {
    const decided = this.#decided.at(-1);
    if (decided === undefined) return undefined;
    const { decision, candidates, revision } = decided;
    const { reason, chosen, probabilities, confidence, policy } = decision;
    return {
      ...{ family: this.#stepFamily!, revision, reason, probability: probabilities[chosen]! },
      ...{ candidates: candidates.length, ...given({ policy, confidence: confidence ?? undefined }) },
      ...(this.#failed === undefined ? {} : { failed: [...this.#failed] }),
    };
  }

  #place() {
    return { atMs: this.#with.clock.nowMs(), rollout: this.#in.rollout.id, call: this.#index };
  }

  /** Adds which call of which rollout this is, and what was chosen for it. */
  #named(headers: string[]): string[] {
    const { headerId } = this.#in.rollout;
    headers.push("x-rollbook-rollout", headerId, "x-rollbook-call", `${headerId}.${this.#index}`);
    // An agent that wants to stay with what a router chose names it in its next call.
    if (this.#candidate !== "") headers.push("x-rollbook-model", this.#candidate);
    return headers;
  }

  /** Long prompts are not kept in memory a second time for what few calls need. */
  #readAgain(): RequestFacts {
    const { dialect, body } = this.#in;
    return dialect.readRequest(parseBody(body))!;
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
