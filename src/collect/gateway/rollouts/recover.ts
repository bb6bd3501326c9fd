/** Recovers the state of earlier runs of a gateway from its journal. In: the journal, and an up-to-date catalog of
 *  the book. Out: rollouts that continue, rollouts whose sealing was interrupted, and artifacts that lack a
 *  signature or an outcome. A rollout leaves the journal after its artifact and its signature are durable. Its
 *  `closed` event is in the journal before the artifact is in the book, and names the envelope. Does not read the
 *  book. */
import { type Digest, digestBytes, type Id } from "../../../base/index.ts";
import {
  Attestation,
  type PublicKey,
  RolloutContent,
  RolloutEvent,
  type SealedBlob,
  Tombstone,
} from "../../../contract/index.ts";
import type { Catalog } from "../../../store/index.ts";
import { type EventOf, eventBytes, Journal, type LogPlace } from "../journal/index.ts";
import { feedbackFor } from "../sealing/index.ts";
import type { ClosedIndex } from "./closed-index.ts";
import { lostCalls } from "./lost-calls.ts";
import { OpenRollout } from "./open-rollout.ts";

export interface Recovered {
  readonly journal: Journal;
  readonly open: OpenRollout[];
  /** Closed rollouts whose artifacts are not in the book. */
  readonly halfClosed: { readonly rollout: OpenRollout; readonly closed: EventOf<"closed"> }[];
  /** Artifacts in the book that lack a signature or an outcome. */
  readonly incomplete: RecoveredArtifact[];
  /** Rollouts whose journal has lost entries. */
  readonly damaged: DamagedRollout[];
}

export interface DamagedRollout {
  readonly rollout: string;
  /** The missing calls. Undefined if the opening is missing, so the rollout cannot continue. Its entries stay in the
   *  journal for a start with all segments. */
  readonly missing?: readonly number[];
}

export interface RecoveredArtifact extends Pick<EventOf<"closed">, "receipt"> {
  readonly envelope: Digest;
  /** Outcomes that the book does not hold. */
  readonly feedback: readonly SealedBlob[];
  /** True if this gateway still has to sign the artifact. */
  readonly toSign: boolean;
  /** Remaining places of the artifact's rollout in the journal. */
  readonly places: readonly LogPlace[];
}

interface RecoverOptions {
  /** Directory of the journal. */
  readonly directory: string;
  readonly catalog: Catalog;
  readonly closed: Pick<ClosedIndex, "sealedCalls">;
  readonly signer?: PublicKey | undefined;
}

export function recoverRollouts({ directory, catalog, closed, signer }: RecoverOptions): Recovered {
  const { journal, rollouts, replaced } = readJournal(directory);
  const recovered: Recovered = { journal, open: [], halfClosed: [], incomplete: [], damaged: [] };
  const isErased = (digest: Digest) => catalog.referrersOfKind(digest, Tombstone.kind).length > 0;
  journal.release(replaced);
  for (const [id, { rollout, isEmpty, closing, places }] of rollouts) {
    const envelope = closing?.envelope;
    if (isEmpty) journal.release(places);
    else if (rollout === undefined) {
      if (closed.sealedCalls(id) !== undefined) journal.release(places);
      else recovered.damaged.push({ rollout: id });
    } else if (closing === undefined || envelope === undefined) {
      // The end of a sealed rollout may be gone with its segment, while another rollout keeps the segment of its
      // beginning.
      const opening = digestBytes(RolloutEvent.kind, eventBytes(id, rollout.opening));
      const isSealed = catalog.record(opening) !== undefined || isErased(opening);
      // After a failed sealing the rollout may have continued. An artifact with fewer calls does not cover all entries
      // here.
      if (isSealed && (closed.sealedCalls(id) ?? -1) >= rollout.calls.size) journal.release(places);
      else recovered.open.push(rollout);
    } else if (catalog.record(envelope) !== undefined) {
      const feedback = missingFeedback(rollout, envelope, catalog);
      const toSign =
        closing.signer !== undefined && closing.signer === signer && !isSigned(envelope, signer, catalog);
      if (feedback.length === 0 && !toSign) journal.release(places);
      else recovered.incomplete.push({ envelope, receipt: closing.receipt, feedback, toSign, places });
    } else if (isErased(envelope)) journal.release(places);
    else recovered.halfClosed.push({ rollout, closed: closing });
  }
  journal.tidy();
  for (const { id, lostCalls: missing } of [
    ...recovered.open,
    ...recovered.halfClosed.map(({ rollout }) => rollout),
  ])
    if (missing.length > 0) recovered.damaged.push({ rollout: id, missing });
  return recovered;
}

function isSigned(envelope: Digest, signer: PublicKey, catalog: Catalog): boolean {
  const attestations = catalog.referrersOfKind(envelope, Attestation.kind);
  return attestations.some((each) => (catalog.record(each)!.fields as { signer?: string }).signer === signer);
}

/** Outcomes that came after the close and are not in the book yet. */
function missingFeedback(
  { feedback: events, calls }: OpenRollout,
  envelope: Digest,
  catalog: Catalog,
): SealedBlob[] {
  if (events.length === 0) return [];
  const isContent = (digest: Digest) => catalog.record(digest)?.kind === RolloutContent.kind;
  const content = catalog.referencesOf(envelope).find(isContent)!;
  // Missing calls mean that the journal was being released, so the artifact was complete. Call numbers would be wrong
  // here.
  if (calls.size < (catalog.record(content)!.fields as { calls: number }).calls) return [];
  const numbers = [...calls.keys()].sort((a, b) => a - b);
  const feedback = events.flatMap((event) => feedbackFor({ content, calls: numbers }, event));
  return feedback.filter(({ digest }) => catalog.record(digest) === undefined);
}

interface JournaledRollout {
  rollout?: OpenRollout;
  /** True if the rollout was closed without a call, and so without an artifact. */
  isEmpty: boolean;
  /** The closing event, if no call followed it. */
  closing?: EventOf<"closed"> | undefined;
  /** Places of all entries of the rollout. */
  readonly places: LogPlace[];
  /** Calls that later calls report as delivered. */
  readonly sent: Set<number>;
  /** True if a call reports more earlier calls than the journal has. */
  hasGap: boolean;
}

interface JournalFindings {
  readonly journal: Journal;
  readonly rollouts: Map<Id, JournaledRollout>;
  /** Places of rollouts that were closed without a call, and whose names were used again. */
  readonly replaced: LogPlace[];
}

function readJournal(directory: string): JournalFindings {
  const rollouts = new Map<Id, JournaledRollout>();
  const replaced: LogPlace[] = [];
  const begin = (id: Id): JournaledRollout => {
    const found = { places: [], sent: new Set<number>(), hasGap: false, isEmpty: false };
    rollouts.set(id, found);
    return found;
  };
  const journal = Journal.open(directory, {
    event({ rollout: id, event }, place) {
      if (event.kind === "opened") {
        replaced.push(...(rollouts.get(id)?.places ?? []));
        begin(id).rollout = new OpenRollout(id, event);
      }
      const found = rollouts.get(id) ?? begin(id);
      found.places.push(place);
      found.rollout?.events.push(place);
      if (event.kind === "graded") found.rollout?.addFeedback(event);
      if (event.kind !== "closed") return;
      if (event.envelope === undefined) found.isEmpty = true;
      else found.closing = event;
    },
    called(facts, place) {
      const found = rollouts.get(facts.rollout) ?? begin(facts.rollout);
      found.places.push(place);
      const { rollout } = found;
      if (rollout === undefined) return;
      // The sealing failed at that time, and the rollout continued.
      found.closing = undefined;
      for (const { call, delivery } of facts.deliveries) if (delivery === "sent") found.sent.add(call);
      if (facts.earlier > rollout.calls.size) found.hasGap = true;
      rollout.addCall(place, facts);
      if (facts.costUsd === undefined) rollout.unpriced.push(place);
      rollout.lastUsedMs = Math.max(rollout.lastUsedMs, facts.startedAtMs + facts.durationMs);
    },
  });
  for (const { rollout, sent, hasGap } of rollouts.values())
    if (rollout !== undefined) rollout.lostCalls = lostCalls(rollout, { sent, hasGap });
  return { journal, rollouts, replaced };
}
