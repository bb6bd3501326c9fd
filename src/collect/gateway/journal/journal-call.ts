/** Format of a call in the journal: numbers at fixed places, then texts, then the bytes that crossed the wire. In:
 *  facts of the call. Out: the parts of its entry; and the call again. This runs for every call, so frequent facts
 *  are numbers, and only rare facts are JSON text. Pure. */
import { type Digest, type Id, RollbookError } from "../../../base/index.ts";
import type { Delivery, Step } from "../../../contract/index.ts";
import type { DialectName, TokenUsage } from "../dialects/index.ts";
import type { RoutedDecision, TargetFacts } from "../upstream/index.ts";
import {
  type DecidedJson,
  decidedBytes,
  type ReadFrame,
  readDecided,
  readDecidedJson,
  writeDecided,
} from "./decided.ts";
import type { FrameReferences } from "./frame-references.ts";
import type { CallOutcome } from "./journal-event.ts";

/** Form of a stored part: the bytes that passed, or the redacted facts. */
type RequestForm = "body" | "facts";
type ReplyForm = "json" | "sse" | "facts" | "none";

/** A call in the journal, without its bytes. */
export interface CalledFacts {
  readonly rollout: Id;
  readonly index: number;
  /** Number of calls of the rollout in the journal before this call. */
  readonly earlier: number;
  readonly dialect: DialectName;
  readonly target: TargetFacts;
  readonly status: number;
  readonly outcome: CallOutcome;
  readonly steps: readonly Step[];
  readonly stepFamily?: Id | undefined;
  readonly startedAtMs: number;
  readonly firstByteMs?: number | undefined;
  readonly durationMs: number;
  readonly usage?: TokenUsage | undefined;
  readonly costUsd?: number | undefined;
  /** Deliveries of earlier replies of this rollout. */
  readonly deliveries: readonly { readonly call: number; readonly delivery: Delivery }[];
  readonly requestForm: RequestForm;
  readonly replyForm: ReplyForm;
  /** Digests of the bytes that passed, if the journal does not hold these bytes. */
  readonly bodyDigest?: Digest | undefined;
  readonly replyDigest?: Digest | undefined;
  /** Digest of the sent body, if it differs from the received body. */
  readonly sentDigest?: Digest | undefined;
  /** True if the sent body is the kept body with only the model replaced. Its digest is then computed later. */
  readonly isRenamed?: boolean | undefined;
}

/** Stored parts of a call: bytes, their forms, and digests of bytes that are not stored. */
export interface CalledParts
  extends Pick<CalledFacts, "requestForm" | "replyForm" | "bodyDigest" | "replyDigest"> {
  readonly request: Uint8Array;
  readonly reply: readonly Uint8Array[];
  /** Media that a redacted request or reply carried besides text. */
  readonly media: readonly Uint8Array[];
}

/** A call to add. Its parts and the cached texts supply the other facts. */
export interface NewCall
  extends Omit<CalledFacts, "rollout" | "target" | "steps" | "stepFamily" | keyof CalledParts> {
  readonly decided: readonly RoutedDecision[];
}

export interface CalledEntry extends CalledFacts {
  readonly request: Buffer;
  readonly reply: Buffer;
  readonly media: readonly Buffer[];
}

/** Texts that repeat in the entries of a rollout and of a target, in UTF-8: the rollout's id, the target's facts as
 *  JSON. */
export interface CallTexts {
  readonly rollout: Uint8Array;
  readonly target: Uint8Array;
}

/** First byte of a call; an event begins with a brace. Decisions of version 1 are whole steps. Decisions of version
 *  2 are in the JSON text. In version 3 every decision has its whole frame. */
const VERSION = 4;
/** First version with the decisions as numbers. */
const NUMBERS_VERSION = 3;
const BRACE = 0x7b;
const NEWLINE = 0x0a;
/** Byte offsets of an entry's numbers. After the head come the decisions, then texts and bytes in the order of their
 *  lengths. Integers have 4 bytes, amounts 8; unknown amounts are NaN. */
const AT = {
  ...{ version: 0, dialect: 1, outcome: 2, forms: 3, status: 4, index: 8 },
  ...{ rolloutBytes: 12, targetBytes: 16, extraBytes: 20, requestBytes: 24, replyBytes: 28 },
  ...{ startedAtMs: 32, durationMs: 40, firstByteMs: 48, costUsd: 56 },
  ...{ promptTokens: 64, completionTokens: 72, cachedTokens: 80, earlier: 88, decisions: 92 },
} as const;
const HEAD_BYTES = 96;
/** The head of versions 1 and 2 has no number of decisions. */
const FORMER_HEAD_BYTES = AT.decisions;

// Codes of names in an entry. A code never changes its meaning: a new name takes the next code.
export const DIALECT_CODES: Readonly<Record<DialectName, number>> = {
  "openai-chat": 0,
  "openai-responses": 1,
  "openai-completions": 2,
  "anthropic-messages": 3,
};
export const OUTCOME_CODES: Readonly<Record<CallOutcome, number>> = {
  answered: 0,
  refused: 1,
  "provider-failed": 2,
  cut: 3,
  disconnected: 4,
};
const REQUEST_FORM_CODES: Readonly<Record<RequestForm, number>> = { body: 0, facts: 1 };
const REPLY_FORM_CODES: Readonly<Record<ReplyForm, number>> = { json: 0, sse: 1, facts: 2, none: 3 };
const dialectOf = decoderOf("dialect", DIALECT_CODES);
const outcomeOf = decoderOf("outcome", OUTCOME_CODES);
const requestFormOf = decoderOf("request form", REQUEST_FORM_CODES);
const replyFormOf = decoderOf("reply form", REPLY_FORM_CODES);
/** Flag in the byte of the forms. */
const RENAMED = 0x80;

/** Rare facts, and facts without a fixed length. Earlier versions also have the decisions, their family and
 *  `isRenamed` here. */
interface Extra
  extends Pick<
    CalledFacts,
    "steps" | "stepFamily" | "deliveries" | "bodyDigest" | "replyDigest" | "sentDigest" | "isRenamed"
  > {
  readonly decided: readonly DecidedJson[];
  readonly mediaBytes: readonly number[];
}

/** True for a call. An event is one line of canonical JSON. An earlier version wrote a call as a line of JSON and
 *  then its bytes. */
export function isCall(payload: Buffer): boolean {
  return payload[0] !== BRACE || payload.includes(NEWLINE);
}

/** `frames` has begun this entry. The numbers come first. The log copies them at once, because the next call reuses their buffer. */
export function encodeCall(
  facts: NewCall,
  { rollout, target }: CallTexts,
  parts: CalledParts,
  frames: FrameReferences,
): (string | Uint8Array)[] {
  const { request, reply, media } = parts;
  const { decided } = facts;
  const extra = extraText(facts, parts);
  let replyBytes = 0;
  for (const chunk of reply) replyBytes += chunk.length;
  let headBytes = HEAD_BYTES;
  for (const each of decided) headBytes += decidedBytes(each);
  const { view: head, bytes } = numbersOf(headBytes);
  head.setUint8(AT.version, VERSION);
  head.setUint8(AT.dialect, DIALECT_CODES[facts.dialect]);
  head.setUint8(AT.outcome, OUTCOME_CODES[facts.outcome]);
  const forms = (REQUEST_FORM_CODES[parts.requestForm] << 4) | REPLY_FORM_CODES[parts.replyForm];
  head.setUint8(AT.forms, facts.isRenamed === true ? forms | RENAMED : forms);
  head.setUint32(AT.status, facts.status, true);
  head.setUint32(AT.index, facts.index, true);
  head.setUint32(AT.rolloutBytes, rollout.length, true);
  head.setUint32(AT.targetBytes, target.length, true);
  head.setUint32(AT.extraBytes, Buffer.byteLength(extra), true);
  head.setUint32(AT.requestBytes, request.length, true);
  head.setUint32(AT.replyBytes, replyBytes, true);
  head.setFloat64(AT.startedAtMs, facts.startedAtMs, true);
  head.setFloat64(AT.durationMs, facts.durationMs, true);
  head.setFloat64(AT.firstByteMs, facts.firstByteMs ?? Number.NaN, true);
  head.setFloat64(AT.costUsd, facts.costUsd ?? Number.NaN, true);
  head.setFloat64(AT.promptTokens, facts.usage?.promptTokens ?? Number.NaN, true);
  head.setFloat64(AT.completionTokens, facts.usage?.completionTokens ?? Number.NaN, true);
  head.setFloat64(AT.cachedTokens, facts.usage?.cachedTokens ?? Number.NaN, true);
  head.setUint32(AT.earlier, facts.earlier, true);
  head.setUint32(AT.decisions, decided.length, true);
  const all: (string | Uint8Array)[] = [bytes, rollout, target];
  if (extra !== "") all.push(extra);
  let at = HEAD_BYTES;
  for (const each of decided) {
    const { frame, more } = writeDecided(head, at, { decided: each, frames });
    at += decidedBytes(each);
    all.push(frame);
    if (more.length > 0) all.push(more);
  }
  all.push(request, ...reply, ...media);
  return all;
}

/** Reused views by length. A new view per entry would cost more than writing its numbers, and Buffer writes check
 *  every number first. */
const NUMBERS = new Map<number, { readonly view: DataView; readonly bytes: Uint8Array }>();
const MOST_LENGTHS = 64;

function numbersOf(length: number): { readonly view: DataView; readonly bytes: Uint8Array } {
  let known = NUMBERS.get(length);
  if (known === undefined) {
    const bytes = new Uint8Array(length);
    known = { view: new DataView(bytes.buffer), bytes };
    if (NUMBERS.size >= MOST_LENGTHS) NUMBERS.clear();
    NUMBERS.set(length, known);
  }
  return known;
}

/** Decodes everything except the bytes that crossed the wire. */
export function decodeFacts(payload: Buffer, readFrame: ReadFrame): CalledFacts {
  return decode(payload, readFrame).facts;
}

export function decodeCall(payload: Buffer, readFrame: ReadFrame): CalledEntry {
  const { facts, extra, end } = decode(payload, readFrame);
  let at = end;
  const take = (bytes: number) => {
    at += bytes;
    return payload.subarray(at - bytes, at);
  };
  const request = take(payload.readUInt32LE(AT.requestBytes));
  const reply = take(payload.readUInt32LE(AT.replyBytes));
  return { ...facts, request, reply, media: (extra.mediaBytes ?? []).map(take) };
}

/** Text of the frame that a decision of this entry holds itself. */
export function frameTextOf(payload: Buffer, decision: number): string {
  const { numbers, end } = decodeNumbers(payload);
  let at = end;
  for (const field of [AT.rolloutBytes, AT.targetBytes, AT.extraBytes]) at += payload.readUInt32LE(field);
  for (const { frameBytes, moreBytes } of numbers.slice(0, decision)) at += frameBytes + moreBytes;
  return payload.toString("utf8", at, at + numbers[decision]!.frameBytes);
}

/** Numbers of the decisions, and the offset of the texts after them. */
function decodeNumbers(payload: Buffer): { numbers: ReturnType<typeof readDecided>[]; end: number } {
  const version = payload[AT.version]!;
  if (!(version >= 1 && version <= VERSION)) throw otherVersion(version);
  if (version < NUMBERS_VERSION) return { numbers: [], end: FORMER_HEAD_BYTES };
  let end = HEAD_BYTES;
  const numbers = Array.from({ length: payload.readUInt32LE(AT.decisions) }, () => {
    const each = readDecided(payload, end);
    end = each.end;
    return each;
  });
  return { numbers, end };
}

function decode(
  payload: Buffer,
  readFrame: ReadFrame,
): { facts: CalledFacts; extra: Partial<Extra>; end: number } {
  const { numbers, end: textsAt } = decodeNumbers(payload);
  let end = textsAt;
  const text = (bytes: number) => {
    end += bytes;
    return payload.toString("utf8", end - bytes, end);
  };
  const rollout = text(payload.readUInt32LE(AT.rolloutBytes)) as Id;
  const target = JSON.parse(text(payload.readUInt32LE(AT.targetBytes))) as TargetFacts;
  const extra = JSON.parse(text(payload.readUInt32LE(AT.extraBytes)) || "{}") as Partial<Extra>;
  const { mediaBytes: _, decided: former = [], ...rest } = extra;
  const decided = [...former.map(readDecidedJson), ...numbers.map((each) => each.decided(text, readFrame))];
  const facts: CalledFacts = {
    rollout,
    target,
    index: payload.readUInt32LE(AT.index),
    earlier: payload.readUInt32LE(AT.earlier),
    dialect: dialectOf(payload[AT.dialect]!),
    outcome: outcomeOf(payload[AT.outcome]!),
    status: payload.readUInt32LE(AT.status),
    requestForm: requestFormOf((payload[AT.forms]! & ~RENAMED) >> 4),
    replyForm: replyFormOf(payload[AT.forms]! & 15),
    startedAtMs: payload.readDoubleLE(AT.startedAtMs),
    durationMs: payload.readDoubleLE(AT.durationMs),
    firstByteMs: numberAt(payload, AT.firstByteMs),
    costUsd: numberAt(payload, AT.costUsd),
    usage: usageAt(payload),
    steps: decided.map(({ step }) => step),
    stepFamily: decided[0]?.family,
    isRenamed: (payload[AT.forms]! & RENAMED) > 0 || undefined,
    deliveries: [],
    ...rest,
  };
  return { facts, extra, end };
}

/** Decodes codes to names. A code without a name belongs to another version. */
function decoderOf<Name extends string>(what: string, codes: Readonly<Record<Name, number>>) {
  const names: Name[] = [];
  for (const name in codes) names[codes[name]] = name;
  return (code: number): Name => names[code] ?? refuseCode(what, code);
}

function refuseCode(what: string, code: number): never {
  throw new RollbookError(
    "journal-version",
    { found: code, what },
    `a call in the journal has the ${what} number ${code}, which this version does not know. Finish its rollouts with the gateway that wrote it.`,
  );
}

function numberAt(payload: Buffer, at: number): number | undefined {
  const value = payload.readDoubleLE(at);
  return Number.isNaN(value) ? undefined : value;
}

function usageAt(payload: Buffer): TokenUsage | undefined {
  const promptTokens = numberAt(payload, AT.promptTokens);
  const completionTokens = numberAt(payload, AT.completionTokens);
  if (promptTokens === undefined || completionTokens === undefined) return undefined;
  const cachedTokens = numberAt(payload, AT.cachedTokens);
  const usage = { promptTokens, completionTokens };
  return cachedTokens === undefined ? usage : { ...usage, cachedTokens };
}

/** The JSON text of rare facts. Empty if there are none. */
function extraText(
  { deliveries, sentDigest }: NewCall,
  { bodyDigest, replyDigest, media }: CalledParts,
): string {
  let text = "";
  const add = (name: keyof Extra, json: string) => {
    text += `${text === "" ? "{" : ","}"${name}":${json}`;
  };
  if (deliveries.length > 0) add("deliveries", `[${deliveries.map(deliveryText).join()}]`);
  if (sentDigest !== undefined) add("sentDigest", `"${sentDigest}"`);
  if (bodyDigest !== undefined) add("bodyDigest", `"${bodyDigest}"`);
  if (replyDigest !== undefined) add("replyDigest", `"${replyDigest}"`);
  if (media.length > 0) add("mediaBytes", `[${media.map(({ length }) => length).join()}]`);
  return text === "" ? "" : `${text}}`;
}

function deliveryText({ call, delivery }: CalledFacts["deliveries"][number]): string {
  return `{"call":${call},"delivery":"${delivery}"}`;
}

function otherVersion(found: number | undefined): RollbookError {
  return new RollbookError(
    "journal-version",
    { found, known: VERSION },
    "the journal holds calls of another version. Finish its rollouts with the gateway that wrote it.",
  );
}
