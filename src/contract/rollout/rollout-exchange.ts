/** Converts a stored artifact back to the inline JSON that `parseRolloutDraft` reads. */
import { type ColumnOf, columnFrom, type Digest, type DType } from "../../base/index.ts";
import { type ColumnRef, encodeWire, openRecord, refuse } from "../codec/index.ts";
import { Call, openMessage } from "./call.ts";
import { RolloutContent, RolloutEnvelope } from "./rollout.ts";
import { RolloutDraft } from "./rollout-draft.ts";
import type { Stream, TokenColumns, TokenStream } from "./stream.ts";

/** Reads a blob whose digest has been checked. */
export type ReadBlob = (digest: Digest) => Promise<{ kind: string; bytes: Uint8Array } | undefined>;

export async function inlineRollout(
  read: ReadBlob,
  artifact: { content: Digest; envelope: Digest },
): Promise<Record<string, unknown>> {
  const envelope = openRecord(
    RolloutEnvelope,
    await need(read, artifact.envelope, "envelope"),
    artifact.envelope,
  );
  const inline = await inlineContent(read, artifact.content);
  const {
    schema: _e,
    content: _d,
    ...envelopeRest
  } = encodeWire(RolloutEnvelope, envelope) as RolloutEnvelope;
  // The state may be outside the book, or erased. Then only its digest is returned.
  const state = inline.finalState === undefined ? undefined : await read(inline.finalState as Digest);
  return {
    ...inline,
    ...(state === undefined ? {} : { finalStateValue: openMessage(state.bytes, "the final state") }),
    envelope: envelopeRest,
    contentDigest: artifact.content,
    envelopeDigest: artifact.envelope,
  };
}

/** As inlineRollout, without the envelope and without the value of the final state. */
export async function inlineContent(read: ReadBlob, digest: Digest): Promise<Record<string, unknown>> {
  const content = openRecord(RolloutContent, await need(read, digest, "content"), digest);
  const { schema: _, calls, streams, ...rest } = encodeWire(RolloutContent, content) as RolloutContent;
  return {
    schema: RolloutDraft.kind,
    ...rest,
    calls: await Promise.all(calls.map((call) => inlineCall(read, call))),
    streams: await Promise.all(streams.map((item) => inlineStream(read, item))),
  };
}

/** Typed columns of a token stream, as stored. */
export async function readTokenColumns(read: ReadBlob, item: TokenStream): Promise<TokenColumns> {
  const columns: Record<string, unknown> = {};
  for (const [name, column] of Object.entries(item.columns)) {
    if (column !== undefined) columns[name] = await readColumn(read, column, name);
  }
  return columns as unknown as TokenColumns;
}

export async function readColumn<T extends DType>(
  read: ReadBlob,
  column: ColumnRef<T>,
  name: string,
): Promise<ColumnOf[T]> {
  const values = columnFrom(column.dtype, await need(read, column.digest, `column ${name}`));
  if (values.length !== column.length) {
    throw refuse(
      "length-mismatch",
      { column: name, expected: column.length, actual: values.length },
      `column ${name} (${column.digest}) has ${values.length} values, the stream says ${column.length}.`,
    );
  }
  return values;
}

async function inlineStream(read: ReadBlob, item: Stream): Promise<unknown> {
  if (item.level === "step") return item;
  const { columns: _, length: _l, samples: _s, ...rest } = item;
  const columns = await readTokenColumns(read, item);
  return {
    ...rest,
    ...Object.fromEntries(
      Object.entries(columns).map(([name, values]) => [name, Array.from(values as ArrayLike<number>)]),
    ),
  };
}

async function inlineCall(read: ReadBlob, call: Digest): Promise<unknown> {
  const record = openRecord(Call, await need(read, call, "call"), call);
  const { schema: _, ...rest } = encodeWire(Call, record) as Call;
  const messages = (digests: readonly Digest[]) =>
    Promise.all(digests.map(async (each) => openMessage(await need(read, each, "message"), each)));
  const { tools } = rest.request;
  return {
    ...rest,
    request: {
      ...rest.request,
      messages: await messages(rest.request.messages),
      ...(tools === undefined ? {} : { tools: (await messages([tools]))[0] }),
    },
    response: { ...rest.response, messages: await messages(rest.response.messages) },
  };
}

async function need(read: ReadBlob, digest: Digest, what: string): Promise<Uint8Array> {
  const blob = await read(digest);
  if (blob === undefined)
    throw refuse(
      "missing-blob",
      { digest, what },
      `the ${what} ${digest} is not in the book. Restore it, or import the artifact again.`,
    );
  return blob.bytes;
}
