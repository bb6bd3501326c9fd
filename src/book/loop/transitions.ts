/** Stores transitions of a training loop in a book, durable and signed, and reads them back.
 *  In: an open book. Out: transitions with their envelopes. A transition counts once its envelope exists: an
 *  interrupted write does not count. */
import type { Digest, Id } from "../../base/index.ts";
import { LoopEnvelope, LoopTransition, type SealedBlob, seal } from "../../contract/index.ts";
import { makeSealer, readRecord } from "../../store/index.ts";
import { type OpenBook, requireTrusted } from "../open/index.ts";

export interface SealedTransition {
  readonly digest: Digest;
  readonly record: LoopTransition;
  readonly envelope: LoopEnvelope;
}

/** Digests of the sealed records that a transition made. */
export type TransitionRecords = Omit<LoopEnvelope, "schema" | "transition" | "atMs">;

/** `beside`: records that enter the book with the transition, or not at all. */
export async function sealTransition(
  { store, signer, clock }: OpenBook,
  transition: Omit<LoopTransition, "schema">,
  { records = {}, beside = [] }: { records?: TransitionRecords; beside?: readonly SealedBlob[] } = {},
): Promise<SealedTransition> {
  const content = seal(LoopTransition, transition);
  const envelope = seal(LoopEnvelope, {
    ...{ transition: content.digest, atMs: clock.nowMs() },
    ...records,
  });
  await makeSealer(store, signer).add({
    envelope,
    others: [content.digest],
    blobs: [...beside, content, envelope],
  });
  return { digest: content.digest, record: content.record, envelope: envelope.record };
}

/** Transitions of one run, in no particular order. If trust is required, a transition that no trusted key signed is
 *  refused. */
export async function readTransitions(book: OpenBook, run: Id): Promise<SealedTransition[]> {
  const index = await book.index();
  const own = new Set<unknown>(
    index.ofKind(LoopTransition.kind).flatMap(({ digest, fields }) => (fields.run === run ? [digest] : [])),
  );
  const envelopes = index.ofKind(LoopEnvelope.kind).filter(({ fields }) => own.has(fields.transition));
  await requireTrusted(book, index, envelopes);
  const found = new Map<Digest, SealedTransition>();
  for (const { digest, fields } of envelopes) {
    const transition = fields.transition as Digest;
    // A transition sealed twice is one transition. The smaller envelope stands for both, regardless of their order.
    if (found.has(transition)) continue;
    found.set(transition, {
      digest: transition,
      record: await readRecord(book.store, LoopTransition, transition),
      envelope: await readRecord(book.store, LoopEnvelope, digest),
    });
  }
  return [...found.values()];
}
