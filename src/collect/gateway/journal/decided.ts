/** Format of a decision in the journal. In: a routed decision. Out: its numbers and texts; and the step again. Text
 *  that repeats from call to call (the router, its candidates) is encoded once; the rest is numbers at fixed places.
 *  Sealing makes the step later, outside the serving thread. Pure except for cached texts. */
import type { Id } from "../../../base/index.ts";
import type { RevisionKey, Step } from "../../../contract/index.ts";
import { type Decision, type DecisionCandidate, type DecisionToLog, stepOf } from "../../../policy/index.ts";
import type { RoutedDecision } from "../upstream/index.ts";
import {
  type EncodedFrame,
  type FramePlace,
  type FrameReferences,
  framePlaceOf,
} from "./frame-references.ts";

/** Facts of a router that repeat in its decisions. */
interface RouterFrame extends EncodedFrame {
  readonly revision: RevisionKey;
  readonly policy: RevisionKey | undefined;
  readonly shadow: RevisionKey | undefined;
  /** Family under which the step is sealed. In version 2 the entry holds the family instead. */
  readonly family: Id | undefined;
}

type ShownByRouter = Omit<RouterFrame, keyof EncodedFrame> & {
  readonly candidates: readonly DecisionCandidate[];
  /** Absent in entries of earlier versions. */
  readonly relaxed?: Decision["relaxed"];
};
type DecidedFields = DecisionToLog["context"]["fields"];
type ShadowChoice = Pick<NonNullable<Decision["shadow"]>, "chosen" | "probabilities">;

/** The router's result for one request. */
interface MadeByRouter {
  readonly decision: Decision;
  readonly shadow: ShadowChoice | null;
  readonly fields: DecidedFields;
  readonly turn: number;
  readonly call: number | null;
}

/** A decision in the JSON text of an entry of version 2. */
export type DecidedJson = [
  shown: ShownByRouter,
  made: [
    chosen: number,
    probabilities: Decision["probabilities"],
    reason: Decision["reason"],
    confidence: Decision["confidence"],
    turn: number,
    call: number | null,
    fields: DecidedFields,
    monteCarlo: NonNullable<Decision["monteCarlo"]> | null,
    shadow: ShadowChoice | null,
  ],
];

/** A decoded decision. */
interface DecidedStep {
  readonly step: Step;
  readonly family: Id | undefined;
}

/** Texts of a decision. They follow the numbers of all decisions of the entry. */
interface DecidedTexts {
  /** The frame, or a reference to it. */
  readonly frame: Uint8Array;
  /** DecidedFields without a fixed place among the numbers, as JSON. */
  readonly more: Uint8Array;
}

// An entry stores the index in this list, so new names go to the end.
const REASONS: readonly Decision["reason"][] = [
  ...(["policy", "below-floor", "no-policy", "only-candidate", "constraints-relaxed"] as const),
];
/** Numeric request fields with a fixed place. */
const PLACED = ["messages", "tools", "requestTokens", "maxTokens"] as const;
/** Call number of a decision without a call. */
const NO_CALL = 0xffffffff;
/** Byte offsets of a decision's numbers. Counts have 4 bytes, codes 2, amounts 8. */
const AT = {
  ...{ frameBytes: 0, moreBytes: 4, probabilities: 8, shadowProbabilities: 12 },
  ...{ chosen: 16, shadowChosen: 20, turn: 24, call: 28, reason: 32, stream: 34 },
  ...{ confidence: 36, draws: 44, drawFloor: 52 },
  ...{ messages: 60, tools: 68, requestTokens: 76, maxTokens: 84 },
} as const;
/** Bytes before the router's probabilities. The shadow's probabilities follow them. */
const FIXED_BYTES = 92;

/** The last frame of every frozen candidate list. A gateway passes a router the same list while nothing fails. */
const FRAMES = new WeakMap<readonly DecisionCandidate[], RouterFrame>();

/** Number of bytes of the decision's numbers. */
export function decidedBytes({ decision }: RoutedDecision): number {
  const { probabilities, shadow } = decision;
  return FIXED_BYTES + 8 * (probabilities.length + (shadow?.probabilities.length ?? 0));
}

/** Writes the decision's numbers at `start`. Returns its texts. */
export function writeDecided(
  into: DataView,
  start: number,
  { decided, frames }: { decided: RoutedDecision; frames: FrameReferences },
): DecidedTexts {
  const texts = { frame: frames.next(frameOf(decided)), more: moreFields(decided.context.fields) };
  writeNumbers(into, start, decided, texts);
  return texts;
}

function frameOf({ decision, candidates, revision, family }: RoutedDecision): RouterFrame {
  const { policy, shadow, relaxed } = decision;
  const seen = decision.candidates ?? candidates;
  let frame = FRAMES.get(seen);
  const isKnown =
    relaxed === undefined &&
    frame?.revision === revision &&
    frame.policy === policy &&
    frame.shadow === shadow?.revision &&
    frame.family === family;
  if (frame === undefined || !isKnown) {
    const shown = { revision, policy, shadow: shadow?.revision, family, candidates: seen };
    const text: ShownByRouter = relaxed === undefined ? shown : { ...shown, relaxed };
    const isKept = relaxed === undefined && Object.isFrozen(seen);
    const bytes = Buffer.from(JSON.stringify(text));
    // The field is there from the beginning, so that all frames have one shape.
    frame = { ...shown, isKept, bytes, reference: undefined };
    if (isKept) FRAMES.set(seen, frame);
  }
  return frame;
}

/** Writes NaN for unknown amounts. */
function writeNumbers(
  into: DataView,
  start: number,
  { decision, context, turn, call }: DecisionToLog,
  { frame, more }: DecidedTexts,
): void {
  const { probabilities, shadow, monteCarlo } = decision;
  const { messages, tools, stream, requestTokens, maxTokens } = context.fields;
  into.setUint32(start + AT.frameBytes, frame.length, true);
  into.setUint32(start + AT.moreBytes, more.length, true);
  into.setUint32(start + AT.probabilities, probabilities.length, true);
  into.setUint32(start + AT.shadowProbabilities, shadow?.probabilities.length ?? 0, true);
  into.setUint32(start + AT.chosen, decision.chosen, true);
  into.setUint32(start + AT.shadowChosen, shadow?.chosen ?? 0, true);
  into.setUint32(start + AT.turn, turn, true);
  into.setUint32(start + AT.call, call ?? NO_CALL, true);
  into.setUint16(start + AT.reason, REASONS.indexOf(decision.reason), true);
  into.setUint16(start + AT.stream, typeof stream === "boolean" ? 1 + Number(stream) : 0, true);
  into.setFloat64(start + AT.confidence, decision.confidence ?? Number.NaN, true);
  into.setFloat64(start + AT.draws, monteCarlo?.draws ?? Number.NaN, true);
  into.setFloat64(start + AT.drawFloor, monteCarlo?.floor ?? Number.NaN, true);
  into.setFloat64(start + AT.messages, numberOf(messages), true);
  into.setFloat64(start + AT.tools, numberOf(tools), true);
  into.setFloat64(start + AT.requestTokens, numberOf(requestTokens), true);
  into.setFloat64(start + AT.maxTokens, numberOf(maxTokens), true);
  const at = writeList(into, start + FIXED_BYTES, probabilities);
  if (shadow !== undefined) writeList(into, at, shadow.probabilities);
}

function writeList(into: DataView, start: number, values: readonly number[]): number {
  for (let i = 0; i < values.length; i++) into.setFloat64(start + 8 * i, values[i]!, true);
  return start + 8 * values.length;
}

/** Reads the text of a frame from another entry of the segment. */
export type ReadFrame = (place: FramePlace) => string;

/** The numbers of a decision. */
interface DecidedNumbers {
  readonly end: number;
  readonly frameBytes: number;
  readonly moreBytes: number;
  /** `text` returns the next given number of bytes of the entry's texts. */
  decided(text: (bytes: number) => string, readFrame: ReadFrame): DecidedStep;
}

export function readDecided(from: Buffer, start: number): DecidedNumbers {
  const frameBytes = from.readUInt32LE(start + AT.frameBytes);
  const moreBytes = from.readUInt32LE(start + AT.moreBytes);
  let end = start + FIXED_BYTES;
  const list = (count: number) =>
    Array.from({ length: count }, () => {
      end += 8;
      return jsonNumber(from.readDoubleLE(end - 8));
    });
  const probabilities = list(from.readUInt32LE(start + AT.probabilities));
  const shadowProbabilities = list(from.readUInt32LE(start + AT.shadowProbabilities));
  const decided: DecidedNumbers["decided"] = (text, readFrame) => {
    const frame = text(frameBytes);
    const place = framePlaceOf(frame);
    const shown = JSON.parse(place === undefined ? frame : readFrame(place)) as ShownByRouter;
    const more = text(moreBytes);
    const call = from.readUInt32LE(start + AT.call);
    const draws = from.readDoubleLE(start + AT.draws);
    const decision: Decision = {
      chosen: from.readUInt32LE(start + AT.chosen),
      probabilities,
      reason: REASONS[from.readUInt16LE(start + AT.reason)]!,
      confidence: jsonNumber(from.readDoubleLE(start + AT.confidence)),
    };
    if (!Number.isNaN(draws)) decision.monteCarlo = { draws, floor: from.readDoubleLE(start + AT.drawFloor) };
    return stepOfRouter(shown, {
      decision,
      shadow: { chosen: from.readUInt32LE(start + AT.shadowChosen), probabilities: shadowProbabilities },
      fields: { ...fieldsAt(from, start), ...(more === "" ? {} : (JSON.parse(more) as DecidedFields)) },
      turn: from.readUInt32LE(start + AT.turn),
      call: call === NO_CALL ? null : call,
    });
  };
  return { end, frameBytes, moreBytes, decided };
}

/** Reads a decision of an entry of version 2. */
export function readDecidedJson([shown, made]: DecidedJson): DecidedStep {
  const [chosen, probabilities, reason, confidence, turn, call, fields, monteCarlo, shadow] = made;
  const decision: Decision = { chosen, probabilities, reason, confidence };
  if (monteCarlo !== null) decision.monteCarlo = monteCarlo;
  return stepOfRouter(shown, { decision, shadow, fields, turn, call });
}

function stepOfRouter(
  { revision, policy, shadow: shadowRevision, family, candidates, relaxed }: ShownByRouter,
  { decision, shadow, fields, turn, call }: MadeByRouter,
): DecidedStep {
  if (policy !== undefined) decision.policy = policy;
  if (relaxed !== undefined) decision.relaxed = relaxed;
  if (shadowRevision !== undefined) decision.shadow = { revision: shadowRevision, ...shadow! };
  const called = call === null ? {} : { call };
  return { family, step: stepOf({ decision, context: { fields }, candidates, revision, turn, ...called }) };
}

const NOTHING = new Uint8Array(0);

/** Fields without a fixed place, as JSON. The request fields of a gateway have fixed places, so there are rarely
 *  others. */
function moreFields(fields: DecidedFields): Uint8Array {
  let more: Record<string, unknown> | undefined;
  for (const name in fields) {
    const value = fields[name]!;
    if (hasPlace(name, value)) continue;
    more ??= {};
    more[name] = value;
  }
  return more === undefined ? NOTHING : Buffer.from(JSON.stringify(more));
}

function hasPlace(name: string, value: DecidedFields[string]): boolean {
  if (name === "stream") return typeof value === "boolean";
  const isPlaced =
    name === "messages" || name === "tools" || name === "requestTokens" || name === "maxTokens";
  return isPlaced && Number.isFinite(value);
}

function fieldsAt(from: Buffer, start: number): DecidedFields {
  const stream = from.readUInt16LE(start + AT.stream);
  const fields: Record<string, number | boolean> = {};
  for (const name of PLACED) {
    const value = from.readDoubleLE(start + AT[name]);
    if (Number.isFinite(value)) fields[name] = value;
  }
  if (stream > 0) fields.stream = stream === 2;
  return fields;
}

function numberOf(value: DecidedFields[string] | undefined): number {
  return typeof value === "number" ? value : Number.NaN;
}

/** The number as JSON stores it: a non-finite number becomes null, as in the record. */
function jsonNumber(value: number): number {
  return Number.isFinite(value) ? value : (null as unknown as number);
}
