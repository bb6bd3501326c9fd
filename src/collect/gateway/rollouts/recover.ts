/** What a gateway finds of its earlier runs. In: the journal, and of the book only what the journal names, and the
 *  tombstones where something of that is missing. Out: rollouts that go on, and rollouts whose sealing was cut short.
 *  A rollout leaves the journal after its artifact and its signature are durable and its name is among the closed ones:
 *  whatever was cut short is in the journal, and its closing there says which envelope to look for. */
import { join } from "node:path";
import type { Digest, Id } from "../../../base/index.ts";
import { openRecord, type PublicKey, RolloutEnvelope, Tombstone } from "../../../contract/index.ts";
import { type BlobStore, type Book, digestsOfKind, readRecord } from "../../../store/index.ts";
import {
  type ClosedRollout,
  ClosedRollouts,
  type EventOf,
  feedbackFor,
  Journal,
  type LogPlace,
  OpenRollout,
} from "../journal/index.ts";
import { lostCalls } from "./lost-calls.ts";
import { type ClosedInBook, closedInBook } from "./rebuild-closed-index.ts";

export interface Recovered {
  readonly journal: Journal;
  readonly closed: ClosedRollouts;
  readonly open: OpenRollout[];
  /** Closed, but the artifact did not make it to the disk. */
  readonly halfClosed: { readonly rollout: OpenRollout; readonly closed: EventOf<"closed"> }[];
  /** Sealed, and not yet among the closed ones. */
  readonly sealed: SealedRollout[];
  /** Of which the journal has lost something. */
  readonly damaged: DamagedRollout[];
}

export interface DamagedRollout {
  readonly rollout: string;
  /** The calls that are missing; undefined where the opening is, and with it the rollout: what the journal has of it stays
   *  there for a start with all of its segments. */
  readonly missing?: readonly number[];
}

export interface SealedRollout {
  readonly id: string;
  readonly closed: ClosedRollout;
  /** Whether this gateway was to sign it, and perhaps has not. */
  readonly toSign: boolean;
  /** What the journal still has of it. */
  readonly places: readonly LogPlace[];
}

type GatewayBook = BlobStore & Pick<Book, "root">;

interface Whose {
  readonly worker: string;
  readonly signer?: PublicKey | undefined;
}

/** Reads the journal. Only rollouts of this worker are taken up. */
export async function recoverRollouts(
  store: GatewayBook,
  { directory, ...whose }: Whose & { directory: string },
): Promise<Recovered> {
  const { journal, rollouts, replaced } = readJournal(directory);
  const closed = ClosedRollouts.open(join(directory, "closed.db"));
  try {
    return await recover(store, { journal, rollouts, replaced, closed, whose });
  } catch (error) {
    closed.abandon();
    throw error;
  }
}

async function recover(
  store: GatewayBook,
  { journal, rollouts, replaced, closed, whose }: JournalFindings & { closed: ClosedRollouts; whose: Whose },
): Promise<Recovered> {
  const { unsigned, cutShort, ...known } = closed.isNew ? await fill(closed, store, whose) : NOTHING;
  let erased = known.erased;
  const recovered: Recovered = { journal, closed, open: [], halfClosed: [], sealed: [], damaged: [] };
  for (const [id, found] of unsigned) {
    const places = rollouts.get(id as Id)?.places ?? [];
    recovered.sealed.push({ id, closed: found, toSign: true, places });
    rollouts.delete(id as Id);
  }
  journal.release(replaced);
  for (const [id, found] of rollouts) {
    const { rollout, isEmpty, places, hadClosing } = found;
    const closing = hadClosing === true ? found.closing : cutShort.get(id);
    // What is left in a segment of a rollout that is sealed, or that came to nothing.
    if (isEmpty === true || closed.get(id) !== undefined) journal.release(places);
    else if (rollout === undefined) recovered.damaged.push({ rollout: id });
    else if (closing === undefined) recovered.open.push(rollout);
    else {
      const sealed = await sealedAs(closing, rollout, store);
      // It may be missing because it was erased: then it must not be sealed again.
      if (sealed === undefined) erased ??= await erasedFrom(store);
      if (closing.envelope !== undefined && erased?.has(closing.envelope) === true) journal.release(places);
      else if (sealed === undefined) recovered.halfClosed.push({ rollout, closed: closing });
      else {
        // Of outcomes that came after the closing nobody else will tell the book; of the others it knows.
        for (const grade of rollout.grades)
          for (const { kind, digest, bytes } of feedbackFor(sealed, grade))
            if (!(await store.has(digest))) store.put(kind, bytes);
        recovered.sealed.push({ id, closed: sealed, toSign: closing.signer === whose.signer, places });
      }
    }
  }
  if (recovered.sealed.length > 0) await store.flush();
  journal.tidy();
  for (const { id, lostCalls: missing } of [
    ...recovered.open,
    ...recovered.halfClosed.map(({ rollout }) => rollout),
  ])
    if (missing.length > 0) recovered.damaged.push({ rollout: id, missing });
  return recovered;
}

const NOTHING: Partial<Pick<ClosedInBook, "erased">> & Pick<ClosedInBook, "unsigned" | "cutShort"> = {
  unsigned: new Map(),
  cutShort: new Map(),
};

/** The records that the tombstones of the book name. */
async function erasedFrom(store: GatewayBook): Promise<Set<Digest>> {
  const erased = new Set<Digest>();
  for (const digest of digestsOfKind(store.root, Tombstone.kind)) {
    const { records } = await readRecord(store, Tombstone, digest);
    for (const each of records) erased.add(each.digest);
  }
  return erased;
}

async function fill(closed: ClosedRollouts, store: BlobStore, whose: Whose): Promise<ClosedInBook> {
  const found = await closedInBook(store, whose);
  for (const [id, each] of found.closed) if (!found.unsigned.has(id)) closed.add(id, each);
  return found;
}

/** What is known of a rollout if the envelope that its closing names made it to the disk. */
async function sealedAs(
  { envelope, ending, receipt }: EventOf<"closed">,
  rollout: OpenRollout,
  store: BlobStore,
): Promise<ClosedRollout | undefined> {
  const blob = envelope === undefined ? undefined : await store.get(envelope);
  if (blob === undefined) return undefined;
  const { content } = openRecord(RolloutEnvelope, blob.bytes, envelope);
  return {
    ...{ content, envelope: envelope!, ending, ...(receipt === undefined ? {} : { receipt }) },
    ...{ calls: [...rollout.calls.keys()].sort((a, b) => a - b), grades: rollout.grades },
  };
}

interface Found {
  rollout?: OpenRollout;
  /** Closed without a call, and so without an artifact. */
  isEmpty?: boolean;
  /** The journal has a closing of it; of others the book may have one. */
  hadClosing?: boolean;
  /** How it was to be sealed, if nothing has happened in it since. */
  closing?: EventOf<"closed"> | undefined;
  /** Of everything about it. */
  readonly places: LogPlace[];
  /** Calls that others say were delivered. */
  readonly sent: Set<number>;
  /** A call says that more had been recorded before it than are there. */
  hasGap: boolean;
}

interface JournalFindings {
  readonly journal: Journal;
  readonly rollouts: Map<Id, Found>;
  /** Of rollouts that were closed without a call, and whose names were used again. */
  readonly replaced: LogPlace[];
}

function readJournal(directory: string): JournalFindings {
  const rollouts = new Map<Id, Found>();
  const replaced: LogPlace[] = [];
  const foundOf = (id: Id, place: LogPlace): Found => {
    const found = rollouts.get(id) ?? { places: [], sent: new Set(), hasGap: false };
    rollouts.set(id, found);
    found.places.push(place);
    return found;
  };
  const journal = Journal.open(directory, {
    event({ rollout: id, event }, place) {
      if (event.kind === "opened") {
        replaced.push(...(rollouts.get(id)?.places ?? []));
        rollouts.set(id, { rollout: new OpenRollout(id, event), places: [], sent: new Set(), hasGap: false });
      }
      const found = foundOf(id, place);
      found.rollout?.events.push(place);
      if (event.kind === "graded") found.rollout?.addGrade(event);
      if (event.kind !== "closed") return;
      if (event.envelope === undefined) found.isEmpty = true;
      else {
        found.closing = event;
        found.hadClosing = true;
      }
    },
    called(facts, place) {
      const found = foundOf(facts.rollout, place);
      const { rollout } = found;
      if (rollout === undefined) return;
      // It could not be sealed then, and went on.
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
