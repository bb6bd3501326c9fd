/** The journal of the gateway: what is on disk before a reply is released. In: events of open rollouts, and calls as
 *  the bytes that crossed the wire. Out: the same again after a crash; the sealing reads it by journal-reader.ts. It is not the book:
 *  an entry goes once its rollout is sealed. Reads and writes; understands neither requests nor replies. */
import { canonicalize } from "../../base/canonical-json.ts";
import type { Digest } from "../../base/digest.ts";
import { RollbookError } from "../../base/errors.ts";
import type { Id } from "../../base/ids.ts";
import { type Delivery, openRecord, RolloutEvent, type Step } from "../../contract/index.ts";
import { AppendLog, type LogPlace, type Waiter } from "../../store/append-log.ts";
import type { DialectName, Usage } from "./dialects/dialect.ts";
import type { CallOutcome, EventOf } from "./open-rollout.ts";
import type { TargetFacts } from "./routes.ts";

export type { LogPlace, Waiter };
/** What a part of a call is in: the bytes that passed, or, where something was redacted, what may be recorded. */
export type RequestForm = "body" | "facts";
export type ReplyForm = "json" | "sse" | "facts" | "none";

/** A call in the journal, apart from its bytes. */
export interface CalledFacts {
  readonly rollout: Id;
  readonly index: number;
  readonly dialect: DialectName;
  readonly target: TargetFacts;
  readonly status: number;
  readonly outcome: CallOutcome;
  readonly steps: readonly Step[];
  readonly stepFamily?: Id | undefined;
  readonly startedAtMs: number;
  readonly firstByteMs?: number | undefined;
  readonly durationMs: number;
  readonly usage?: Usage | undefined;
  readonly costUsd?: number | undefined;
  /** What became of earlier replies of this rollout. */
  readonly deliveries: readonly { readonly call: number; readonly delivery: Delivery }[];
  readonly requestForm: RequestForm;
  readonly replyForm: ReplyForm;
  /** Of the bytes that passed, where the journal does not hold them. */
  readonly bodyDigest?: Digest | undefined;
  readonly replyDigest?: Digest | undefined;
  /** Of what went out, where that is not what came in. */
  readonly sentDigest?: Digest | undefined;
}

/** What of a call is kept: its bytes, what they are, and the digests of what is not kept. */
export interface CalledParts
  extends Pick<CalledFacts, "requestForm" | "replyForm" | "bodyDigest" | "replyDigest"> {
  readonly request: Uint8Array;
  readonly reply: readonly Uint8Array[];
  /** What a redacted request or reply carried beside text. */
  readonly media: readonly Uint8Array[];
}

/** A call as it is added: the rest is said by its parts, and by texts that are there already. */
export type NewCall = Omit<CalledFacts, "rollout" | "target" | keyof CalledParts>;

export interface CalledEntry extends CalledFacts {
  readonly request: Buffer;
  readonly reply: Buffer;
  readonly media: readonly Buffer[];
}

/** What an earlier process left, entry by entry. */
export interface JournalVisitor {
  event(record: RolloutEvent, place: LogPlace): void;
  called(facts: CalledFacts, place: LogPlace): void;
}

const CALLED = "rollbook.gateway-call.v1";
const NEWLINE = 10;
const SOON_MS = 5;

export class Journal {
  readonly #log: AppendLog;
  #soon: Waiter[] = [];

  private constructor(log: AppendLog) {
    this.#log = log;
  }

  static open(directory: string, visitor: JournalVisitor): Journal {
    const log = AppendLog.open(directory, ({ place, payload }) => {
      const { head, rest } = split(payload);
      if (rest === undefined) visitor.event(openRecord(RolloutEvent, head), place);
      else visitor.called(parseCalled(head), place);
    });
    return new Journal(log);
  }

  /** Whether a write has failed: then nothing more is recorded, and so nothing delivered. */
  get hasFailed(): boolean {
    return this.#log.hasFailed;
  }

  /** Bytes that wait for the disk. */
  get pendingBytes(): number {
    return this.#log.pendingBytes;
  }

  /** Adds an event; durable once `flush` resolves. */
  event(rollout: Id, event: RolloutEvent["event"]): LogPlace {
    return this.#log.append([eventBytes(rollout, event)]);
  }

  /** Adds an event that is written out already. */
  written(text: string): LogPlace {
    return this.#log.append([Buffer.from(text)]);
  }

  /** Adds a call; durable once `flush` resolves. `texts` are its rollout and its target as JSON. */
  called(facts: NewCall, texts: { rollout: string; target: string }, parts: CalledParts): LogPlace {
    const { request, reply, media } = parts;
    let replyBytes = 0;
    for (const chunk of reply) replyBytes += chunk.length;
    let sizes = `${request.length},${replyBytes}`;
    for (const { length } of media) sizes += `,${length}`;
    const head = `{"schema":"${CALLED}","rollout":${texts.rollout},"target":${texts.target},"sizes":[${sizes}],`;
    const whole = `${head}${factsText(facts)}${formsText(parts)}}\n`;
    return this.#log.append(
      reply.length === 1 && media.length === 0
        ? [whole, request, reply[0]!]
        : [whole, request, ...reply, ...media],
    );
  }

  flush(): Promise<void> {
    return this.#log.flush();
  }

  /** Tells the waiter when everything added before is durable. */
  whenDurable(waiter: Waiter): void {
    this.#log.whenDurable(waiter);
  }

  /** Resolves a little later than `flush`, when more has come along. */
  flushSoon(): Promise<void> {
    return new Promise((durable, lost) => this.whenDurableSoon({ durable, lost }));
  }

  /** The same, a moment later: for those for whom nobody waits, so that fewer writes do. */
  whenDurableSoon(waiter: Waiter): void {
    this.#soon.push(waiter);
    if (this.#soon.length > 1) return;
    setTimeout(() => {
      const waiting = this.#soon;
      this.#soon = [];
      for (const each of waiting) this.#log.whenDurable(each);
    }, SOON_MS);
  }

  release(places: Iterable<LogPlace>): void {
    for (const place of places) this.#log.release(place);
  }

  /** Lets go of what recovery has not taken up. */
  tidy(): void {
    this.#log.tidy();
  }

  close(): Promise<void> {
    return this.#log.close();
  }
}

export function eventBytes(rollout: Id, event: RolloutEvent["event"]): Buffer {
  return Buffer.from(eventText(rollout, event));
}

export function eventText(rollout: Id, event: RolloutEvent["event"]): string {
  const wire = event.kind === "opened" ? { ...event, seed: event.seed.toString() } : event;
  return canonicalize({ schema: RolloutEvent.kind, rollout, event: wire });
}

/** A call as it was journaled. */
export function openCalled(payload: Buffer): CalledEntry {
  const { head, rest } = split(payload);
  const facts = parseCalled(head);
  let at = 0;
  const [request, reply, ...media] = facts.sizes.map((size) => {
    at += size;
    return rest!.subarray(at - size, at);
  });
  return { ...facts, request: request!, reply: reply!, media };
}

/** The members of the facts, written out: this runs for every call, and most of them are numbers. */
function factsText(facts: NewCall): string {
  const { index, dialect, status, outcome, startedAtMs, durationMs } = facts;
  let text = `"index":${index},"dialect":"${dialect}","status":${status},"outcome":"${outcome}"`;
  text += `,"startedAtMs":${startedAtMs},"durationMs":${durationMs}`;
  text += `,"steps":${facts.steps.length === 0 ? "[]" : JSON.stringify(facts.steps)}`;
  let deliveries = "";
  for (const { call, delivery } of facts.deliveries)
    deliveries += `${deliveries === "" ? "" : ","}{"call":${call},"delivery":"${delivery}"}`;
  text += `,"deliveries":[${deliveries}]`;
  const { firstByteMs, usage, costUsd, stepFamily, sentDigest } = facts;
  if (firstByteMs !== undefined) text += `,"firstByteMs":${firstByteMs}`;
  if (usage !== undefined) text += `,"usage":${JSON.stringify(usage)}`;
  if (costUsd !== undefined) text += `,"costUsd":${costUsd}`;
  if (stepFamily !== undefined) text += `,"stepFamily":${JSON.stringify(stepFamily)}`;
  if (sentDigest !== undefined) text += `,"sentDigest":"${sentDigest}"`;
  return text;
}

function formsText({ requestForm, replyForm, bodyDigest, replyDigest }: CalledParts): string {
  let text = `,"requestForm":"${requestForm}","replyForm":"${replyForm}"`;
  if (bodyDigest !== undefined) text += `,"bodyDigest":"${bodyDigest}"`;
  if (replyDigest !== undefined) text += `,"replyDigest":"${replyDigest}"`;
  return text;
}

/** As it stands in the book once the rollout is sealed. */
export function calledEvent(
  facts: CalledFacts,
  { call, parent }: { call: Digest; parent: number | undefined },
): EventOf<"called"> {
  const { index, steps, stepFamily, outcome, startedAtMs, firstByteMs, durationMs, deliveries } = facts;
  return {
    kind: "called",
    index,
    call,
    steps: [...steps],
    ...(stepFamily === undefined ? {} : { stepFamily }),
    ...(parent === undefined ? {} : { parent }),
    outcome,
    startedAtMs,
    ...(firstByteMs === undefined ? {} : { firstByteMs }),
    durationMs,
    deliveries: [...deliveries],
  };
}

/** A line of JSON, and what follows it; an event is nothing but its JSON. */
function split(payload: Buffer): { head: Buffer; rest: Buffer | undefined } {
  const end = payload.indexOf(NEWLINE);
  if (end < 0) return { head: payload, rest: undefined };
  return { head: payload.subarray(0, end), rest: payload.subarray(end + 1) };
}

/** Written by this module and checked by the log: only its version can be wrong. */
function parseCalled(head: Buffer): CalledFacts & { readonly sizes: readonly number[] } {
  const value = JSON.parse(head.toString()) as CalledFacts & { schema: string; sizes: number[] };
  if (value.schema === CALLED) return value;
  throw new RollbookError(
    "journal-version",
    { schema: value.schema },
    `the journal holds entries of another version (${value.schema}). Finish its rollouts with the gateway that wrote it.`,
  );
}
