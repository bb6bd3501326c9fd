/** Turns a draft into sealed records; every artifact is made here.
 *  In: a draft (or its JSON, `rollbook.rollout.v1`). Out: content, envelope and every blob they refer to. Pure. */
import * as z from "zod";
import {
  bytesOf,
  type Column,
  type ColumnOf,
  columnTag,
  type Digest,
  digestColumn,
  dtypeOf,
  emptyColumn,
  firstNonFinite,
  type Json,
} from "../../base/index.ts";
import {
  type ColumnRef,
  count,
  decodeExchange,
  defineRecord,
  digest,
  id,
  json,
  type RecordOf,
  refuse,
  type Sealed,
  scanMask,
  seal,
} from "../codec/index.ts";
import { revisionKey } from "../policy/index.ts";
import { Call, digestCallLog, sealMessage } from "./call.ts";
import { sealFinalState } from "./final-state.ts";
import { checkProofs, RolloutContent, RolloutEnvelope } from "./rollout.ts";
import {
  checkTokenColumns,
  logprobKind,
  stepStream,
  TOKEN_COLUMNS,
  type TokenColumns,
  type TokenStream,
  tokenStream,
} from "./stream.ts";

const numbers = z.array(z.number()).max(100_000_000);

/** Numbers are inline. A single `revision` stands for one segment over the whole stream. */
const tokenStreamDraft = z.strictObject({
  level: z.literal("token"),
  family: id,
  logprobKind,
  tokenizer: z.optional(digest),
  revision: z.optional(revisionKey),
  segments: z.optional(tokenStream.shape.segments),
  ids: numbers,
  logprobs: numbers,
  mask: z.optional(numbers),
  turns: z.optional(numbers),
  rewards: z.optional(numbers),
  advantages: z.optional(numbers),
});

const { schema: _schema, request, response, ...callShape } = Call.schema.shape;
const callDraft = z.strictObject({
  ...callShape,
  request: z.strictObject({ ...request.shape, messages: z.array(json), tools: z.optional(json) }),
  response: z.strictObject({ ...response.shape, messages: z.array(json) }),
});

const { schema: _content, calls: _calls, streams: _streams, ...contentShape } = RolloutContent.schema.shape;
const { schema: _envelope, content: _digest, ...envelopeShape } = RolloutEnvelope.schema.shape;

export const RolloutDraft = defineRecord({
  kind: "rollbook.rollout.v1",
  summary: "The exchange form of an artifact: everything inline. Digests in it are checked.",
  shape: {
    ...contentShape,
    calls: z.array(callDraft),
    streams: z.array(z.discriminatedUnion("level", [tokenStreamDraft, stepStream])),
    envelope: z.strictObject({
      ...envelopeShape,
      attempt: z.optional(count),
      proofs: z.optional(envelopeShape.proofs),
    }),
    /** The value whose digest is `finalState`; it may be given without that digest. */
    finalStateValue: z.optional(json),
    contentDigest: z.optional(digest),
    envelopeDigest: z.optional(digest),
  },
});

type Loose<T> = {
  [K in keyof T]: T[K] extends number[] | undefined ? ArrayLike<number> | Extract<T[K], undefined> : T[K];
};
type StreamDraft = RecordOf<typeof RolloutDraft>["streams"][number];
type TokenStreamDraft = Loose<Extract<StreamDraft, { level: "token" }>>;
/** Columns may be typed arrays; `schema` is implied. */
export type RolloutDraft = Omit<RecordOf<typeof RolloutDraft>, "schema" | "streams"> & {
  streams: (TokenStreamDraft | Extract<StreamDraft, { level: "step" }>)[];
};

export interface SealedBlob {
  readonly kind: string;
  readonly digest: Digest;
  readonly bytes: Uint8Array;
}

export interface SealedRollout {
  readonly content: Sealed<RolloutContent>;
  readonly envelope: Sealed<RolloutEnvelope>;
  /** In writing order: referenced blobs come first, so the envelope is the commit mark. */
  readonly blobs: readonly SealedBlob[];
}

/** Reads the JSON exchange form. */
export function parseRolloutDraft(value: unknown, where = "rollout"): RolloutDraft {
  return decodeExchange(RolloutDraft, value, where);
}

export function sealRollout(draft: RolloutDraft): SealedRollout {
  const blobs: SealedBlob[] = [];
  const calls = draft.calls.map((call) => sealCall(call, blobs).digest);
  return sealRecorded({ ...draft, calls }, blobs);
}

/** A draft whose calls are already sealed and stored, as those of a recorder are. */
export type RecordedRollout = Omit<RolloutDraft, "calls"> & { readonly calls: Digest[] };

/** Seals a rollout around calls that are already in the store. `blobs` come before the rollout in writing order. */
export function sealRecorded(draft: RecordedRollout, blobs: SealedBlob[] = []): SealedRollout {
  const { envelope, streams, calls, finalStateValue, contentDigest, envelopeDigest, ...rest } = draft;
  const state = finalStateValue === undefined ? undefined : sealFinalState(finalStateValue as Json);
  if (state !== undefined) {
    requireDigest("finalState", rest.finalState, state.digest);
    blobs.push(state);
  }
  const content = seal(RolloutContent, {
    ...withoutSchema(rest),
    ...(state === undefined ? {} : { finalState: state.digest }),
    calls,
    streams: streams.map((item, i) =>
      item.level === "step" ? item : sealTokenStream(item, `streams[${i}]`, blobs),
    ),
  });
  const proofs =
    envelope.proofs ??
    (calls.length > 0 ? [{ kind: "call-log" as const, digest: digestCallLog(content.record.calls) }] : []);
  const sealedEnvelope = seal(RolloutEnvelope, {
    ...envelope,
    attempt: envelope.attempt ?? 1,
    proofs,
    content: content.digest,
  });
  checkProofs(sealedEnvelope.record, content.record);
  requireDigest("contentDigest", contentDigest, content.digest);
  requireDigest("envelopeDigest", envelopeDigest, sealedEnvelope.digest);
  return { content, envelope: sealedEnvelope, blobs: [...blobs, content, sealedEnvelope] };
}

function sealCall(call: RolloutDraft["calls"][number], blobs: SealedBlob[]): Sealed<Call> {
  const messages = (list: readonly unknown[]) =>
    list.map((message) => {
      const blob = sealMessage(message as Json);
      blobs.push(blob);
      return blob.digest;
    });
  const { tools, ...request } = call.request;
  const sealed = seal(Call, {
    ...call,
    request: {
      ...request,
      messages: messages(call.request.messages),
      ...(tools === undefined ? {} : { tools: messages([tools])[0]! }),
    },
    response: { ...call.response, messages: messages(call.response.messages) },
  });
  blobs.push(sealed);
  return sealed;
}

function sealTokenStream(draft: TokenStreamDraft, field: string, blobs: SealedBlob[]): TokenStream {
  const length = draft.ids.length;
  const columns = readColumns(draft, field);
  const { revision } = draft;
  if ((draft.segments === undefined) === (revision === undefined)) {
    throw refuse(
      "bad-record",
      { field },
      `${field} names ${revision ? "both" : "neither"} a revision ${revision ? "and" : "nor"} segments. Say once which revision sampled the tokens.`,
    );
  }
  const segments = draft.segments ?? [{ start: 0, end: length, revision: revision! }];
  const item: TokenStream = {
    level: "token",
    family: draft.family,
    logprobKind: draft.logprobKind,
    ...(draft.tokenizer === undefined ? {} : { tokenizer: draft.tokenizer }),
    length,
    samples: scanMask(columns.mask).ones,
    columns: Object.fromEntries(
      Object.entries(columns).map(([name, column]) => [name, referTo(column)]),
    ) as TokenStream["columns"],
    segments,
  };
  if (item.samples === 0)
    throw refuse(
      "empty-samples",
      { field },
      `${field} holds no sampled token. Record at least one or leave the stream out.`,
    );
  checkTokenColumns(item, columns, field);
  for (const [name, column] of Object.entries(columns)) {
    const { digest: known, dtype } = item.columns[name as keyof TokenColumns]!;
    blobs.push({ kind: columnTag(dtype), digest: known, bytes: bytesOf(column) });
  }
  return item;
}

function readColumns(draft: TokenStreamDraft, field: string): TokenColumns {
  const columns: Record<string, Column> = {};
  for (const [name, dtype] of Object.entries(TOKEN_COLUMNS)) {
    const values =
      draft[name as keyof typeof TOKEN_COLUMNS] ??
      (name === "mask" ? new Uint8Array(draft.ids.length).fill(1) : undefined);
    if (values === undefined) continue;
    if (values.length !== draft.ids.length) {
      throw refuse(
        "length-mismatch",
        { field: `${field}.${name}`, expected: draft.ids.length, actual: values.length },
        `${field}.${name} has ${values.length} values, ids has ${draft.ids.length}. Give every column one value per token.`,
      );
    }
    columns[name] = toColumn(dtype, values, `${field}.${name}`);
  }
  return columns as unknown as TokenColumns;
}

/** Copies values into the column's type. An integer that does not fit is refused; a real is rounded to f32. A negative
 *  zero becomes 0, because artifacts travel as canonical JSON, which cannot distinguish them. */
function toColumn<T extends "u8" | "u32" | "f32">(
  dtype: T,
  values: ArrayLike<number>,
  field: string,
): ColumnOf[T] {
  if (values.constructor === emptyColumn(dtype, 0).constructor)
    return normalizeColumn((values as ColumnOf[T]).slice() as ColumnOf[T], field);
  const column = emptyColumn(dtype, values.length);
  for (let i = 0; i < values.length; i++) {
    const value = values[i]!;
    column[i] = value + 0;
    if (dtype !== "f32" && column[i] !== value)
      throw refuse(
        "bad-record",
        { field, index: i, value },
        `${field}[${i}] is ${value}, which is no ${dtype}.`,
      );
    if (!Number.isFinite(column[i]!)) throw notFinite(field, i, value);
  }
  return column;
}

/** Replaces -0 and refuses non-finite values in a copy that already has the column's type. */
function normalizeColumn<T extends "u8" | "u32" | "f32">(to: ColumnOf[T], field: string): ColumnOf[T] {
  if (!(to instanceof Float32Array)) return to;
  const at = firstNonFinite(to);
  if (at >= 0) throw notFinite(field, at, to[at]!);
  const words = new Int32Array(to.buffer, to.byteOffset, to.length);
  for (let i = 0; i < words.length; i++) if (words[i] === NEGATIVE_ZERO) words[i] = 0;
  return to;
}

/** Bits of -0. */
const NEGATIVE_ZERO = -0x80000000;

function notFinite(field: string, index: number, value: number): Error {
  return refuse(
    "non-finite-number",
    { field, index },
    `${field}[${index}] is ${value}, which is not a finite f32. Drop the rollout or correct its numbers.`,
  );
}

function referTo(column: Column): ColumnRef {
  return { digest: digestColumn(column), dtype: dtypeOf(column), length: column.length };
}

function requireDigest(field: string, claimed: Digest | undefined, actual: Digest): void {
  if (claimed === undefined || claimed === actual) return;
  throw refuse(
    "digest-mismatch",
    { field, expected: claimed, actual },
    `${field} says ${claimed}, the content hashes to ${actual}. Restore the original or drop the claim.`,
  );
}

function withoutSchema<T extends object>(value: T): T {
  const { schema: _, ...rest } = value as T & { schema?: unknown };
  return rest as T;
}
