/** The events of open rollouts in the book: written as calls happen, read when a gateway starts.
 *  In: a store. Out: events as small blobs; and, after a crash, the rollouts as they stood.
 *  Events are written without the checks of `seal`: this module makes them itself, once per call. */
import { bytesOf, columnTag, digestColumn } from "../../base/arrays.ts";
import { canonicalize } from "../../base/canonical-json.ts";
import type { Digest } from "../../base/digest.ts";
import { RollbookError } from "../../base/errors.ts";
import type { Id } from "../../base/ids.ts";
import { openMessage } from "../../contract/call.ts";
import {
  Attestation,
  Call,
  type ColumnRef,
  type Feedback,
  Feedback as FeedbackType,
  openRecord,
  type PublicKey,
  type RolloutContent,
  RolloutEnvelope,
  RolloutEvent,
  readColumn,
} from "../../contract/index.ts";
import type { BlobStore } from "../../store/index.ts";
import type { JsonObject } from "./dialects/json.ts";
import { type EventOf, OpenRollout, type RecordedCall, type TokenFacts } from "./open-rollout.ts";
import { samplingOf, wantsTools } from "./reply-facts.ts";
import { isReply, messageKey } from "./same-message.ts";

/** A call's event in canonical form, written out: the one record that is made for every call. */
export function putCalled(
  store: Pick<BlobStore, "put">,
  rollout: OpenRollout,
  event: Omit<EventOf<"called">, "kind">,
): void {
  const { firstByteMs, parent, tokens, steps, stepFamily, deliveries } = event;
  let text = `{"event":{"call":"${event.call}","deliveries":[${deliveries.map(deliveryText).join(",")}]`;
  text += `,"durationMs":${canonicalize(event.durationMs)}`;
  if (firstByteMs !== undefined) text += `,"firstByteMs":${canonicalize(firstByteMs)}`;
  text += `,"index":${event.index},"kind":"called","outcome":"${event.outcome}"`;
  if (parent !== undefined) text += `,"parent":${parent}`;
  text += `,"startedAtMs":${event.startedAtMs}`;
  if (stepFamily !== undefined) text += `,"stepFamily":${canonicalize(stepFamily)}`;
  text += `,"steps":${steps.length === 0 ? "[]" : canonicalize(steps)}`;
  if (tokens !== undefined) text += `,"tokens":${canonicalize(tokens)}`;
  text += `},"rollout":${rollout.idText},"schema":"${RolloutEvent.kind}"}`;
  store.put(RolloutEvent.kind, Buffer.from(text));
}

function deliveryText({ call, delivery }: EventOf<"called">["deliveries"][number]): string {
  return `{"call":${call},"delivery":"${delivery}"}`;
}

export function putEvent(store: Pick<BlobStore, "put">, rollout: Id, event: RolloutEvent["event"]): void {
  const wire = event.kind === "opened" ? { ...event, seed: event.seed.toString() } : event;
  const record = { schema: RolloutEvent.kind, rollout, event: wire };
  store.put(RolloutEvent.kind, Buffer.from(canonicalize(record)));
}

/** Stores the columns of a reply's tokens and says how the event names them. */
export function putTokens(
  store: Pick<BlobStore, "put">,
  rollout: OpenRollout,
  facts: TokenFacts,
): NonNullable<EventOf<"called">["tokens"]> {
  const keep = rollout.keepOf(facts.prompt);
  return {
    family: facts.family,
    revision: facts.revision,
    logprobKind: facts.logprobKind,
    ...(facts.tokenizer === undefined ? {} : { tokenizer: facts.tokenizer }),
    keep,
    prompt: putColumn(store, Uint32Array.from(facts.prompt.slice(keep))),
    samples: facts.samples.map(({ ids, logprobs }) => ({
      ids: putColumn(store, Uint32Array.from(ids)),
      logprobs: putColumn(store, Float32Array.from(logprobs)),
    })),
  };
}

function putColumn<C extends Uint32Array | Float32Array>(store: Pick<BlobStore, "put">, column: C) {
  const dtype = column instanceof Uint32Array ? "u32" : "f32";
  store.put(columnTag(dtype), bytesOf(column));
  return { digest: digestColumn(column), dtype, length: column.length } as ColumnRef<
    C extends Uint32Array ? "u32" : "f32"
  >;
}

export interface ClosedRollout {
  readonly content: Digest;
  readonly envelope: Digest;
  readonly ending: RolloutContent["ending"];
  /** Numbers of its calls, in the order of the content. */
  readonly calls: readonly number[];
  /** Outcomes so far, for their idempotency keys. */
  readonly grades: EventOf<"graded">[];
  readonly receipt?: Digest;
}

export interface Recovered {
  readonly open: OpenRollout[];
  /** Closed, but the artifact did not make it to the disk. */
  readonly halfClosed: { readonly rollout: OpenRollout; readonly closed: EventOf<"closed"> }[];
  readonly closed: Map<string, ClosedRollout>;
  /** Envelopes that were to be signed by `signer`, and are not: a crash came between. */
  readonly unsigned: Digest[];
}

/** Reads the whole book once. Only rollouts of this worker are taken up. */
export async function recoverRollouts(
  store: BlobStore,
  { worker, signer }: { worker: string; signer?: PublicKey | undefined },
): Promise<Recovered> {
  const journals = new Map<string, Journal>();
  const feedback = new Map<Digest, Feedback[]>();
  const signed = new Set<Digest>();
  for await (const item of store.scan()) {
    if (item.type !== "blob") continue;
    if (item.kind === FeedbackType.kind) {
      const record = openRecord(FeedbackType, item.bytes, item.digest);
      feedback.set(record.subject, [...(feedback.get(record.subject) ?? []), record]);
    }
    if (item.kind === Attestation.kind) {
      const attestation = openRecord(Attestation, item.bytes, item.digest);
      if (attestation.signer === signer) for (const subject of attestation.subjects) signed.add(subject);
    }
    if (item.kind !== RolloutEvent.kind) continue;
    const { rollout, event } = openRecord(RolloutEvent, item.bytes, item.digest);
    const journal = journals.get(rollout) ?? { id: rollout, calls: new Map(), grades: [] };
    journals.set(rollout, journal);
    take(journal, event);
  }
  const recovered: Recovered = { open: [], halfClosed: [], closed: new Map(), unsigned: [] };
  for (const journal of journals.values()) {
    if (journal.opened?.worker !== worker) continue;
    await settle(journal, { store, feedback }, recovered);
    const { envelope } = recovered.closed.get(journal.id) ?? {};
    const isOurs = signer !== undefined && journal.closed?.signer === signer;
    if (isOurs && envelope !== undefined && !signed.has(envelope)) recovered.unsigned.push(envelope);
  }
  return recovered;
}

interface Journal {
  readonly id: Id;
  opened?: EventOf<"opened">;
  readonly calls: Map<number, EventOf<"called">>;
  readonly grades: EventOf<"graded">[];
  closed?: EventOf<"closed">;
}

function take(journal: Journal, event: RolloutEvent["event"]): void {
  switch (event.kind) {
    case "opened":
      journal.opened = event;
      return;
    case "called":
      journal.calls.set(event.index, event);
      return;
    case "graded":
      journal.grades.push(event);
      return;
    case "closed":
      journal.closed = event;
      return;
    default:
      event satisfies never;
  }
}

/** Those from before the closing, and those that came as records of their own. */
function gradesOf(
  journal: Journal,
  late: readonly Feedback[],
  calls: readonly number[],
): EventOf<"graded">[] {
  const known = new Set(journal.grades.map((grade) => grade.idempotencyKey));
  const added = late
    .filter(({ idempotencyKey }) => !known.has(idempotencyKey))
    .map(({ schema: _, subject: _s, call, ...rest }) => ({
      kind: "graded" as const,
      ...(call === undefined ? {} : { call: calls[call]! }),
      ...rest,
    }));
  return [...journal.grades, ...added];
}

async function settle(
  journal: Journal,
  { store, feedback }: { store: BlobStore; feedback: ReadonlyMap<Digest, Feedback[]> },
  into: Recovered,
): Promise<void> {
  const { closed } = journal;
  if (closed === undefined) {
    into.open.push(await rebuild(journal, store));
    return;
  }
  const envelope = closed.envelope === undefined ? undefined : await store.get(closed.envelope);
  if (envelope !== undefined) {
    const { content } = openRecord(RolloutEnvelope, envelope.bytes, closed.envelope);
    const calls = [...journal.calls.keys()].sort((a, b) => a - b);
    const { ending, receipt } = closed;
    const told = { envelope: closed.envelope!, ending, ...(receipt === undefined ? {} : { receipt }) };
    const known = { content, ...told, calls };
    into.closed.set(journal.id, { ...known, grades: gradesOf(journal, feedback.get(content) ?? [], calls) });
  } else if (closed.envelope !== undefined)
    into.halfClosed.push({ rollout: await rebuild(journal, store), closed });
}

/** The state of an open rollout, from its events and the calls they name. */
async function rebuild(journal: Journal, store: BlobStore): Promise<OpenRollout> {
  const rollout = new OpenRollout(journal.id, journal.opened!);
  const events = [...journal.calls.values()].sort((a, b) => a.index - b.index);
  for (const event of events) await replay(rollout, event, store);
  // Marks in the order of the journal; what nobody marked before the crash stays unknown, unless a prompt proved it.
  for (const { deliveries } of events)
    for (const { call, delivery } of deliveries) rollout.mark(call, delivery);
  rollout.grades.push(...journal.grades);
  rollout.pendingDeliveries = [];
  return rollout;
}

async function replay(rollout: OpenRollout, event: EventOf<"called">, store: BlobStore): Promise<void> {
  const call = openRecord(Call, await need(store, event.call), event.call);
  const messages = (digests: readonly Digest[]) =>
    Promise.all(digests.map(async (each) => openMessage(await need(store, each), each)));
  const [asked, replied] = [await messages(call.request.messages), await messages(call.response.messages)];
  const place = rollout.tree.ask(
    event.index,
    asked.map((message) => ({ key: messageKey(message), isReply: isReply(message) })),
  );
  rollout.addCall(recordedCall(event, call, replied));
  for (const received of place.received) rollout.mark(received, "sent");
  if (event.outcome === "answered")
    addReply(rollout, { index: event.index, dialect: call.dialect, keys: replied.map(messageKey) });
  rollout.sampling ??= samplingOf(call.request.parameters as JsonObject);
  rollout.addUsage(call.usage, call.costUsd);
  rollout.lastUsedMs = Math.max(rollout.lastUsedMs, event.startedAtMs + event.durationMs);
  for (const step of event.steps) rollout.steps.push({ family: event.stepFamily!, step });
  if (event.tokens !== undefined)
    rollout.addTokens(event.index, await readTokens(rollout, event.tokens, store));
}

/** Replies of one call are alternatives (choices), except where one reply is a list of items. */
export function addReply(
  rollout: OpenRollout,
  reply: { index: number; dialect: Call["dialect"]; keys: readonly string[] },
): void {
  const { keys } = reply;
  if (reply.dialect === "openai-responses") rollout.tree.reply(reply.index, keys);
  else for (const key of keys) rollout.tree.reply(reply.index, [key]);
}

function recordedCall(event: EventOf<"called">, call: Call, replied: readonly unknown[]): RecordedCall {
  return {
    index: event.index,
    digest: event.call,
    model: call.model,
    outcome: event.outcome,
    finishReason: call.response.finishReason,
    wantsTools: replied.some(wantsTools),
    startedAtMs: event.startedAtMs,
    firstByteMs: event.firstByteMs,
    durationMs: event.durationMs,
    parent: event.parent,
    delivery: event.outcome === "disconnected" ? "aborted" : "unknown",
  };
}

async function readTokens(
  rollout: OpenRollout,
  tokens: NonNullable<EventOf<"called">["tokens"]>,
  store: BlobStore,
): Promise<TokenFacts> {
  const read = (digest: Digest) => store.get(digest);
  const rest = await readColumn(read, tokens.prompt, "prompt");
  const samples = await Promise.all(
    tokens.samples.map(async ({ ids, logprobs }) => ({
      ids: [...(await readColumn(read, ids, "ids"))],
      logprobs: [...(await readColumn(read, logprobs, "logprobs"))],
    })),
  );
  const { family, revision, logprobKind, tokenizer, keep } = tokens;
  return { family, revision, logprobKind, tokenizer, prompt: rollout.promptFrom(keep, [...rest]), samples };
}

async function need(store: BlobStore, digest: Digest): Promise<Uint8Array> {
  const blob = await store.get(digest);
  if (blob !== undefined) return blob.bytes;
  throw new RollbookError(
    "missing-blob",
    { digest },
    `the journal of an open rollout names ${digest}, which is not in the book. Run \`rollbook verify\`.`,
  );
}
