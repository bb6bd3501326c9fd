/** What the book says of the rollouts that a gateway closed: read whole, once, where the gateway does not know it any more.
 *  In: the book. Out: rollouts that are sealed, those whose sealing was cut short, and those that are not signed. */
import type { Digest } from "../../../base/index.ts";
import {
  Attestation,
  type Feedback,
  Feedback as FeedbackType,
  openRecord,
  type PublicKey,
  RolloutEnvelope,
  RolloutEvent,
  Tombstone,
} from "../../../contract/index.ts";
import type { BlobStore } from "../../../store/index.ts";
import type { ClosedRollout, EventOf } from "../journal/index.ts";

export interface ClosedInBook {
  readonly closed: Map<string, ClosedRollout>;
  /** Rollouts whose closing is there, and whose artifact is not. */
  readonly cutShort: Map<string, EventOf<"closed">>;
  /** Sealed, to be signed by `signer`, and not signed: a crash came between. */
  readonly unsigned: Map<string, ClosedRollout>;
  /** Records that were erased on purpose, envelopes among them: not to be sealed again. */
  readonly erased: Set<Digest>;
}

/** What the book says of a rollout that was sealed. */
interface Sealed {
  worker?: string;
  /** More than one where a crash cut the first sealing short. */
  readonly closings: EventOf<"closed">[];
  readonly calls: Set<number>;
}

export async function closedInBook(
  store: BlobStore,
  { worker, signer }: { worker: string; signer?: PublicKey | undefined },
): Promise<ClosedInBook> {
  const all = new Map<string, Sealed>();
  const feedback = new Map<Digest, Feedback[]>();
  const signed = new Set<Digest>();
  const erased = new Set<Digest>();
  for await (const item of store.scan()) {
    if (item.type !== "blob") continue;
    if (item.kind === FeedbackType.kind) {
      const record = openRecord(FeedbackType, item.bytes, item.digest);
      feedback.set(record.subject, [...(feedback.get(record.subject) ?? []), record]);
    } else if (item.kind === Attestation.kind) {
      const attestation = openRecord(Attestation, item.bytes, item.digest);
      if (attestation.signer === signer) for (const subject of attestation.subjects) signed.add(subject);
    } else if (item.kind === Tombstone.kind) {
      for (const { digest } of openRecord(Tombstone, item.bytes, item.digest).records) erased.add(digest);
    } else if (item.kind === RolloutEvent.kind) take(all, openRecord(RolloutEvent, item.bytes, item.digest));
  }
  const found: ClosedInBook = { closed: new Map(), cutShort: new Map(), unsigned: new Map(), erased };
  for (const [id, sealed] of all) {
    if (sealed.worker !== worker) continue;
    const known = await closedRollout(sealed, store, feedback);
    const last = sealed.closings.at(-1);
    if (known === undefined) {
      if (last !== undefined) found.cutShort.set(id, last);
      continue;
    }
    found.closed.set(id, known);
    const isOurs = signer !== undefined && last!.signer === signer;
    if (isOurs && !signed.has(known.envelope)) found.unsigned.set(id, known);
  }
  return found;
}

function take(all: Map<string, Sealed>, { rollout, event }: RolloutEvent): void {
  const known = all.get(rollout) ?? { closings: [], calls: new Set() };
  all.set(rollout, known);
  if (event.kind === "opened") known.worker = event.worker;
  if (event.kind === "called") known.calls.add(event.index);
  if (event.kind === "closed") known.closings.push(event);
}

/** Undefined if the artifact is not there. */
async function closedRollout(
  sealed: Sealed,
  store: BlobStore,
  feedback: ReadonlyMap<Digest, Feedback[]>,
): Promise<ClosedRollout | undefined> {
  const calls = [...sealed.calls].sort((a, b) => a - b);
  for (const { envelope, ending, receipt } of sealed.closings) {
    const blob = envelope === undefined ? undefined : await store.get(envelope);
    if (blob === undefined) continue;
    const { content } = openRecord(RolloutEnvelope, blob.bytes, envelope);
    const grades = (feedback.get(content) ?? []).map(({ schema: _, subject: _s, call, ...rest }) => ({
      kind: "graded" as const,
      ...(call === undefined ? {} : { call: calls[call]! }),
      ...rest,
    }));
    const told = { ending, ...(receipt === undefined ? {} : { receipt }) };
    return { content, envelope: envelope!, ...told, calls, grades };
  }
  return undefined;
}
