/** Transitions of a training loop in a book: written durably and signed, and read back.
 *  In: an open book. Out: transitions with their envelopes. A transition counts once its envelope is there: of a write that
 *  was cut short nothing counts. */
import type { Digest, Id } from "../../base/index.ts";
import { LoopEnvelope, LoopTransition, type SealedBlob, seal } from "../../contract/index.ts";
import { makeSealer, readRecord } from "../../store/index.ts";
import { type OpenBook, requireTrusted } from "../open/index.ts";

export interface SealedTransition {
  readonly digest: Digest;
  readonly record: LoopTransition;
  readonly envelope: LoopEnvelope;
}

/** The sealed records that a transition made, by digest. */
export type TransitionRecords = Omit<LoopEnvelope, "schema" | "transition" | "atMs">;

/** `beside`: records that enter the book with it, or not at all. */
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

/** The transitions of one run, in no particular order. Where trust is required, one that no trusted key signed is refused. */
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
    // Sealed twice, it is one transition: the smaller envelope stands for both, whatever came first.
    if (found.has(transition)) continue;
    found.set(transition, {
      digest: transition,
      record: await readRecord(book.store, LoopTransition, transition),
      envelope: await readRecord(book.store, LoopEnvelope, digest),
    });
  }
  return [...found.values()];
}
