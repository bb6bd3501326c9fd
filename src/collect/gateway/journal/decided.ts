/** A decision in the journal. What repeats from call to call (the router, its candidates) is a text that is made once; the
 *  rest is numbers at fixed places. The step that a rollout seals is made of it later, off the serving thread. Pure but for
 *  remembered texts. */
import type { Id } from "../../../base/index.ts";
import type { RevisionKey, Step } from "../../../contract/index.ts";
import { type Decision, type DecisionCandidate, type DecisionToLog, stepOf } from "../../../policy/index.ts";

/** What a router shows of itself in every decision. */
interface RouterFrame {
  readonly revision: RevisionKey;
  readonly policy: RevisionKey | undefined;
  readonly shadow: RevisionKey | undefined;
  /** Under which the step is sealed; in version 2 the entry says it. */
  readonly family: Id | undefined;
  /** All of it, with the candidates, as JSON in UTF-8. */
  readonly bytes: Uint8Array;
}

type ShownByRouter = Omit<RouterFrame, "bytes"> & {
  readonly candidates: readonly DecisionCandidate[];
};
type DecidedFields = DecisionToLog["context"]["fields"];
type MadeByRouter = [
  chosen: number,
  probabilities: Decision["probabilities"],
  reason: Decision["reason"],
  confidence: Decision["confidence"],
  turn: number,
  call: number | null,
  fields: DecidedFields,
  monteCarlo: Decision["monteCarlo"] | null,
  shadow: Pick<NonNullable<Decision["shadow"]>, "chosen" | "probabilities"> | null,
];

/** A decision as it is read; version 2 of an entry holds it like this in its JSON text. */
export type DecidedJson = [ShownByRouter, MadeByRouter];

/** The texts of a decision, which follow its numbers. */
interface DecidedTexts {
  readonly frame: Uint8Array;
  /** DecidedFields that have no place among the numbers, as JSON. */
  readonly more: Uint8Array;
}

// By their numbers in the entry: new names go to the end.
const REASONS: readonly Decision["reason"][] = [
  ...(["policy", "below-floor", "no-policy", "only-candidate", "constraints-relaxed"] as const),
];
/** Of a decision without a call. */
const NO_CALL = 0xffffffff;
/** Before the probabilities of the router, which those of its shadow follow. */
const FIXED_BYTES = 92;

/** The last frame of every list of candidates that cannot change: a gateway shows a router one list while nothing fails. */
const FRAMES = new WeakMap<readonly DecisionCandidate[], RouterFrame>();

export function decidedTexts(
  { decision, context, candidates, revision }: DecisionToLog,
  family: Id | undefined,
): DecidedTexts {
  const { policy, shadow } = decision;
  const seen = decision.candidates ?? candidates;
  let frame = FRAMES.get(seen);
  const isKnown =
    frame?.revision === revision &&
    frame.policy === policy &&
    frame.shadow === shadow?.revision &&
    frame.family === family;
  if (frame === undefined || !isKnown) {
    const shown: ShownByRouter = { revision, policy, shadow: shadow?.revision, family, candidates: seen };
    frame = { ...shown, bytes: Buffer.from(JSON.stringify(shown)) };
    if (Object.isFrozen(seen)) FRAMES.set(seen, frame);
  }
  return { frame: frame.bytes, more: moreFields(context.fields) };
}

export function decidedBytes({ decision: { probabilities, shadow } }: DecisionToLog): number {
  return FIXED_BYTES + 8 * (probabilities.length + (shadow?.probabilities.length ?? 0));
}

/** Returns where the numbers end. What is unknown is not a number. */
export function writeDecided(
  into: Buffer,
  start: number,
  { decision, context, turn, call }: DecisionToLog,
  { frame, more }: DecidedTexts,
): number {
  const { probabilities, shadow, monteCarlo } = decision;
  const { messages, tools, stream, requestTokens, maxTokens } = context.fields;
  into.writeUInt32LE(frame.length, start);
  into.writeUInt32LE(more.length, start + 4);
  into.writeUInt32LE(probabilities.length, start + 8);
  into.writeUInt32LE(shadow?.probabilities.length ?? 0, start + 12);
  into.writeUInt32LE(decision.chosen, start + 16);
  into.writeUInt32LE(shadow?.chosen ?? 0, start + 20);
  into.writeUInt32LE(turn, start + 24);
  into.writeUInt32LE(call ?? NO_CALL, start + 28);
  into.writeUInt16LE(REASONS.indexOf(decision.reason), start + 32);
  into.writeUInt16LE(typeof stream === "boolean" ? 1 + Number(stream) : 0, start + 34);
  into.writeDoubleLE(decision.confidence ?? Number.NaN, start + 36);
  into.writeDoubleLE(monteCarlo?.draws ?? Number.NaN, start + 44);
  into.writeDoubleLE(monteCarlo?.floor ?? Number.NaN, start + 52);
  into.writeDoubleLE(numberOf(messages), start + 60);
  into.writeDoubleLE(numberOf(tools), start + 68);
  into.writeDoubleLE(numberOf(requestTokens), start + 76);
  into.writeDoubleLE(numberOf(maxTokens), start + 84);
  let at = start + FIXED_BYTES;
  for (let i = 0; i < probabilities.length; i++) at = into.writeDoubleLE(probabilities[i]!, at);
  if (shadow !== undefined)
    for (let i = 0; i < shadow.probabilities.length; i++)
      at = into.writeDoubleLE(shadow.probabilities[i]!, at);
  return at;
}

/** `text` gives the next so many bytes of the entry's texts. */
export function readDecided(
  from: Buffer,
  start: number,
): { end: number; decided: (text: (bytes: number) => string) => DecidedJson } {
  let at = start + FIXED_BYTES;
  const list = (count: number) =>
    Array.from({ length: count }, () => {
      at += 8;
      return jsonNumber(from.readDoubleLE(at - 8));
    });
  const probabilities = list(from.readUInt32LE(start + 8));
  const shadowed = list(from.readUInt32LE(start + 12));
  const call = from.readUInt32LE(start + 28);
  const draws = from.readDoubleLE(start + 44);
  const decided = (text: (bytes: number) => string): DecidedJson => {
    const shown = JSON.parse(text(from.readUInt32LE(start))) as ShownByRouter;
    const more = text(from.readUInt32LE(start + 4));
    const made: MadeByRouter = [
      from.readUInt32LE(start + 16),
      probabilities,
      REASONS[from.readUInt16LE(start + 32)]!,
      jsonNumber(from.readDoubleLE(start + 36)),
      from.readUInt32LE(start + 24),
      call === NO_CALL ? null : call,
      { ...fieldsAt(from, start), ...(more === "" ? {} : (JSON.parse(more) as DecidedFields)) },
      Number.isNaN(draws) ? null : { draws, floor: from.readDoubleLE(start + 52) },
      shown.shadow === undefined ? null : { chosen: from.readUInt32LE(start + 20), probabilities: shadowed },
    ];
    return [shown, made];
  };
  return { end: at, decided };
}

export function stepDecided([{ revision, policy, shadow, candidates }, made]: DecidedJson): Step {
  const [chosen, probabilities, reason, confidence, turn, call, fields, monteCarlo, shadowed] = made;
  const decision: Decision = { chosen, probabilities, reason, confidence };
  if (monteCarlo !== null) decision.monteCarlo = monteCarlo!;
  if (policy !== undefined) decision.policy = policy;
  if (shadow !== undefined) decision.shadow = { revision: shadow, ...shadowed! };
  return stepOf({
    decision,
    context: { fields },
    candidates,
    revision,
    turn,
    ...(call === null ? {} : { call }),
  });
}

const NOTHING = new Uint8Array(0);

/** What a gateway shows of a request has its place; mostly there is nothing else. */
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
  const stream = from.readUInt16LE(start + 34);
  const fields: Record<string, number | boolean> = {};
  for (const [name, at] of [
    ["messages", 60],
    ["tools", 68],
    ["requestTokens", 76],
    ["maxTokens", 84],
  ] as const) {
    const value = from.readDoubleLE(start + at);
    if (Number.isFinite(value)) fields[name] = value;
  }
  if (stream > 0) fields.stream = stream === 2;
  return fields;
}

function numberOf(value: DecidedFields[string] | undefined): number {
  return typeof value === "number" ? value : Number.NaN;
}

/** As JSON keeps it: what is not a number is null, and a record says so. */
function jsonNumber(value: number): number {
  return Number.isFinite(value) ? value : (null as unknown as number);
}
