/** Format of an item in a stream: the record under one subject, the payload under another. In: records. Out:
 *  subjects and bytes, and back. Pure. Field names are short because every change sends the whole record. */
import { hash } from "node:crypto";
import { type Digest, isObject, type Json, RollbookError } from "../../../base/index.ts";
import type { ItemRecord } from "../item-record.ts";

export interface StreamItem extends ItemRecord {
  /** First sequence of the item. It is the item's place in line and never changes. */
  readonly place: number;
  /** Hash of the canonical payload. It detects another payload under the same id without a read of the payload. */
  readonly payloadHash: string;
  /** Unique name of the write. A writer that got no answer recognizes its own write by this name. */
  readonly write: string;
}

/** An item with its id and its sequence in the stream. A replacement must name this sequence. */
export interface ViewedItem extends StreamItem {
  readonly id: string;
  readonly seq: number;
}

/** Encodes any id as one subject token of at most 350 characters. */
export function tokenOf(id: string): string {
  return /^[A-Za-z0-9_:+-]+$/.test(id) ? id : `=${Buffer.from(id, "utf8").toString("base64url")}`;
}

export function idOf(token: string): string {
  return token.startsWith("=") ? Buffer.from(token.slice(1), "base64url").toString("utf8") : token;
}

export function hashOf(payload: string): string {
  return hash("sha256", payload, "base64url");
}

/** `place` is absent in the first record of an item, because the stream assigns it. */
export function encodeItem(item: Omit<StreamItem, "place"> & { place?: number }): string {
  const { state, lane, maxAttempts, readyAtMs, attempt, token, worker, expiresAtMs, result, reason } = item;
  return JSON.stringify({
    ...{ v: 1, s: state, l: lane, m: maxAttempts, r: readyAtMs, a: attempt, t: token },
    ...{ w: worker, e: expiresAtMs, d: result, f: reason, p: item.place, h: item.payloadHash, i: item.write },
  });
}

const STATES: readonly unknown[] = ["waiting", "claimed", "done", "dead"] satisfies ItemRecord["state"][];

export function decodeItem(text: string, at: { subject: string; seq: number }): StreamItem {
  const value = readJson(text, at);
  if (!isObject(value) || value.v !== 1 || !STATES.includes(value.s)) throw badRecord(at);
  const whole = (field: string) => {
    const number = value[field];
    return Number.isSafeInteger(number) ? (number as number) : raise(badRecord(at));
  };
  const string = (field: string) => {
    const given = value[field];
    return typeof given === "string" ? given : raise(badRecord(at));
  };
  const unless = <T>(field: string, read: (field: string) => T) =>
    value[field] === null || value[field] === undefined ? null : read(field);
  return {
    state: value.s as ItemRecord["state"],
    ...{ lane: string("l"), maxAttempts: whole("m"), readyAtMs: whole("r"), attempt: whole("a") },
    ...{ token: whole("t"), worker: unless("w", string), expiresAtMs: unless("e", whole) },
    ...{ result: unless("d", string) as Digest | null, reason: unless("f", string) },
    ...{ place: unless("p", whole) ?? at.seq, payloadHash: string("h"), write: string("i") },
  };
}

/** Parses the canonical JSON that the enqueuing process wrote. */
export function decodePayload(text: string, at: { subject: string; seq: number }): Json {
  return readJson(text, at) as Json;
}

function readJson(text: string, at: { subject: string; seq: number }): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw badRecord(at, cause);
  }
}

function badRecord({ subject, seq }: { subject: string; seq: number }, cause?: unknown): RollbookError {
  return new RollbookError(
    "bad-queue-record",
    { subject, seq },
    `${subject}: message ${seq} is not a record of a rollbook queue of this version. Use another queue name for this version.`,
    { cause },
  );
}

function raise(error: Error): never {
  throw error;
}
