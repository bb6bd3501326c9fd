/** One model call, from the request to the delivery mark: choose → send → pass on → journal → release the last byte.
 *  In: a parsed request and the client's response. Out: a call in the journal, in every case. The last bytes of a
 *  reply are released only after the call is durable (unless recording is async). Does not interpret the call for
 *  its rollout: sealing does so later, from the journal. */
import { type RollbookError, reasonOf } from "../../../base/index.ts";
import { CLIENT_LEFT } from "../../../contract/index.ts";
import type { PromptVectors } from "../../../policy/index.ts";
import { isProviderFault } from "../../gateway-replies.ts";
import type { RequestFacts, TokenUsage } from "../dialects/index.ts";
import { type CallOutcome, SOON_MS, type Waiter } from "../journal/index.ts";
import { type Exchange, type Receiver, type ReplyHeaders, UPSTREAM_FAULTS } from "../upstream/index.ts";
import { digestBody, HttpRefusal, type ReplyReader, readerOf } from "../wire/index.ts";
import type { CallContext, IncomingCall } from "./call-context.ts";
import { callEvent } from "./call-report.ts";
import { CallTarget, readAgain } from "./call-target.ts";
import { jsonBytes, partsToKeep } from "./journaled-bytes.ts";
import { passedHeaders, passedPath } from "./outgoing.ts";
import { costUsd, estimateUsd } from "./prices.ts";

/** Limit of unwritten journal bytes. Above it, async recording also waits for the disk. */
const MAX_BEHIND_BYTES = 64 * 1024 * 1024;

export class ModelCall implements Receiver, Waiter {
  readonly #in: IncomingCall;
  readonly #deps: CallContext;
  readonly #index: number;
  readonly #startedAtMs: number;
  readonly #startMs: number;
  #aimed!: CallTarget;
  #exchange: Exchange | undefined;
  #reader: ReplyReader | undefined;
  #status = 0;
  #firstByteMs: number | undefined;
  #tooLarge = false;
  /** Headers of a reply that is held until it is complete. */
  #heldHeaders: string[] | undefined;
  #fault: string | undefined;
  #over = false;
  #durationMs = 0;
  #isToDestroy = false;
  #isReleased = false;

  constructor(incoming: IncomingCall, context: CallContext) {
    this.#in = incoming;
    this.#deps = context;
    this.#startedAtMs = context.clock.nowMs();
    this.#startMs = context.steadyMs();
    this.#index = context.rollouts.begin(incoming.rollout);
  }

  /** `request` is the parsed body, `text` the body as text; `vectors` are those of its prompt, if the router reads
   *  them. Throws a refusal if the model is unknown; then nothing has been sent. */
  start(request: RequestFacts, text: string, vectors?: PromptVectors): void {
    const { response } = this.#in;
    this.#aimed = new CallTarget(this.#in, { call: this.#index, vectors }, this.#deps);
    try {
      if (!this.#aimed.choose(request, text)) throw unknownModel(request.model, this.#deps.routes.names);
    } catch (error) {
      this.#deps.rollouts.takeBack(this.#in.rollout);
      throw error;
    }
    response.on("close", () => this.#closed());
    this.#send();
  }

  /** Replaces `start` if the client has left. */
  leave(): void {
    this.#deps.rollouts.takeBack(this.#in.rollout);
  }

  onStart(status: number, headers: ReplyHeaders): void {
    if (isProviderFault(status) && this.#failOver(`status ${status}`)) return;
    const { response, dialect } = this.#in;
    this.#status = status;
    this.#firstByteMs = this.#elapsedMs();
    const isStream = String(headers["content-type"] ?? "").startsWith("text/event-stream");
    const { returned, redact } = this.#deps;
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
    const { replies, config } = this.#deps;
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
    // A stream without its last event was cut before it reached the gateway, even if the connection ended normally.
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

  #send(): void {
    const { rawHeaders, path, body } = this.#in;
    const { target, sent } = this.#aimed;
    this.#exchange = this.#deps.upstreams.get(target.upstream)!.send(
      {
        method: "POST",
        path: passedPath(path),
        headers: passedHeaders(rawHeaders),
        body: sent ?? body,
      },
      this,
    );
  }

  /** True if another candidate takes over. */
  #failOver(fault: string): boolean {
    const { candidate: from } = this.#aimed;
    if (from === "" || this.#over) return false;
    const before = this.#exchange;
    try {
      if (!this.#aimed.chooseNext()) return false;
    } catch (error) {
      // The router refuses the remaining candidates, so the client gets the upstream's answer.
      this.#deps.log(`call ${this.#in.rollout.id}.${this.#index} has no other candidate: ${reasonOf(error)}`);
      return false;
    }
    before?.abort();
    this.#deps.tell?.({ kind: "failover", ...this.#place(), from, to: this.#aimed.candidate, fault });
    this.#send();
    return true;
  }

  /** The connection has taken the whole reply, or will take no more of it. */
  #closed(): void {
    const { response, rollout } = this.#in;
    const delivery = response.writableFinished ? "sent" : "aborted";
    this.#deps.metrics.delivered(delivery);
    if (this.#over) {
      if (!this.#isToDestroy) rollout.mark(this.#index, delivery);
      return;
    }
    this.#exchange?.abort();
    this.#status = CLIENT_LEFT;
    this.#finish("disconnected", {});
  }

  /** Answers for an upstream that gave no answer. */
  #answer(refusal: HttpRefusal): void {
    const { response, dialect } = this.#in;
    this.#status = refusal.status;
    const body = Buffer.from(JSON.stringify(dialect.errorBody(refusal)));
    this.#reader = readerOf("json", dialect);
    this.#reader.push(body);
    this.#deps.replies.heldBytes += body.length;
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
    const { config, journal } = this.#deps;
    try {
      this.#journal(outcome);
    } catch (error) {
      this.lost(error);
      return;
    }
    const isAhead =
      config.record === "async" && outcome === "answered" && journal.pendingBytes < MAX_BEHIND_BYTES;
    if (!isAhead) {
      journal.whenDurable(this);
      return;
    }
    this.#deps.turnEnd.do(() => this.#release());
    journal.whenDurable(this, SOON_MS);
  }

  durable(): void {
    this.#deps.metrics.committed((this.#elapsedMs() - this.#durationMs) / 1000);
    this.#release();
    this.#end();
  }

  #end(): void {
    this.#deps.replies.heldBytes -= this.#reader?.bytes ?? 0;
    this.#deps.rollouts.end(this.#in.rollout, this.#index);
  }

  /** A reply that cannot be recorded is not delivered. The client sees a broken reply instead of an unrecorded one. */
  lost(error: unknown): void {
    this.#deps.metrics.count("rollbook_gateway_record_failures_total");
    this.#deps.log(`call ${this.#in.rollout.id}.${this.#index} could not be recorded: ${reasonOf(error)}`);
    this.#in.response.destroy();
    this.#end();
  }

  /** Adds the call to the journal and to the metrics. */
  #journal(outcome: CallOutcome): void {
    const { rollout, dialect } = this.#in;
    const durationMs = this.#elapsedMs();
    this.#durationMs = durationMs;
    const usage = this.#reader === undefined || this.#tooLarge ? undefined : this.#peek().usage;
    const parts = partsToKeep(
      {
        request: () => readAgain(this.#in),
        body: this.#in.body,
        reader: this.#reader,
        tooLarge: this.#tooLarge,
      },
      this.#deps.redact,
    );
    const { target, sent, decided } = this.#aimed;
    const { price, capture } = target;
    const cost = usage === undefined || price === undefined ? undefined : costUsd(usage, price);
    // A digest that follows from the kept body and the target is computed when the rollout is sealed.
    const isRenamed = sent !== undefined && capture === undefined && parts.requestForm === "body";
    const place = this.#deps.journal.called(
      {
        index: this.#index,
        earlier: rollout.calls.size,
        dialect: dialect.name,
        status: this.#status,
        outcome: parts.cut === true && outcome === "answered" ? "cut" : outcome,
        decided,
        startedAtMs: this.#startedAtMs,
        firstByteMs: this.#firstByteMs,
        durationMs,
        usage,
        costUsd: cost,
        deliveries: rollout.takeDeliveries(),
        isRenamed,
        sentDigest: sent === undefined || isRenamed ? undefined : digestBody(sent),
      },
      { rollout: rollout.idBytes, target: target.factsBytes },
      parts,
    );
    const estimatedUsd = cost === undefined ? this.#estimateUsd() : undefined;
    rollout.addCall(place, { index: this.#index, status: this.#status, usage, costUsd: cost, estimatedUsd });
    this.#measure(outcome, usage, cost);
  }

  #estimateUsd(): number | undefined {
    const { price } = this.#aimed.target;
    const reader = this.#reader;
    // The upstream has done work even if the client left.
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
    const { headers, body } = this.#deps.returned.whole(this.#heldHeaders, this.#reader!.chunks);
    response.writeHead(this.#status, headers);
    response.end(body);
  }

  #peeked: ReturnType<ReplyReader["peek"]> | undefined;

  #peek(): ReturnType<ReplyReader["peek"]> {
    this.#peeked ??= this.#reader!.peek();
    return this.#peeked;
  }

  #measure(outcome: CallOutcome, usage: TokenUsage | undefined, costUsd: number | undefined): void {
    const { metrics, tell } = this.#deps;
    const call = {
      upstream: this.#aimed.target.upstream,
      model: this.#aimed.label,
      status: this.#status,
      outcome,
      firstByteMs: this.#firstByteMs,
      durationMs: this.#durationMs,
      usage,
      costUsd,
    };
    metrics.call(call);
    if (tell === undefined) return;
    const reader = this.#tooLarge ? undefined : this.#reader;
    const about = {
      incoming: this.#in,
      aimed: this.#aimed,
      place: this.#place(),
      reader,
      fault: this.#fault,
    };
    tell(callEvent({ ...call, ...about }));
  }

  #place() {
    return { atMs: this.#deps.clock.nowMs(), rollout: this.#in.rollout.id, call: this.#index };
  }

  /** Adds the ids of the rollout and the call, and the chosen candidate. */
  #named(headers: string[]): string[] {
    const { headerId } = this.#in.rollout;
    headers.push("x-rollbook-rollout", headerId, "x-rollbook-call", `${headerId}.${this.#index}`);
    // An agent can name this candidate in its next call to stay with it.
    const { candidate } = this.#aimed;
    if (candidate !== "") headers.push("x-rollbook-model", candidate);
    return headers;
  }

  #elapsedMs(): number {
    return Math.max(0, this.#deps.steadyMs() - this.#startMs);
  }
}

function refusalOf(error: RollbookError): HttpRefusal {
  const statuses: Readonly<Record<string, number>> = UPSTREAM_FAULTS;
  const status = statuses[error.code] ?? 502;
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
