/** What a gateway finds of its earlier runs. In: the journal and the book. Out: rollouts that go on, rollouts whose
 *  sealing was cut short, and, for feedback by their names, rollouts that are sealed. */
import type { Digest } from "../../base/digest.ts";
import type { Id } from "../../base/ids.ts";
import {
  Attestation,
  type Feedback,
  Feedback as FeedbackType,
  openRecord,
  type PublicKey,
  type RolloutContent,
  RolloutEnvelope,
  RolloutEvent,
} from "../../contract/index.ts";
import type { BlobStore } from "../../store/index.ts";
import { Journal, type LogPlace } from "./journal.ts";
import { type EventOf, OpenRollout } from "./open-rollout.ts";

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

/** Closed without a call, and so without an artifact. */
export interface EmptyRollout {
  readonly ending: RolloutContent["ending"];
}

export interface Recovered {
  readonly journal: Journal;
  readonly open: OpenRollout[];
  /** Closed, but the artifact did not make it to the disk. */
  readonly halfClosed: { readonly rollout: OpenRollout; readonly closed: EventOf<"closed"> }[];
  readonly closed: Map<string, ClosedRollout>;
  /** Envelopes that were to be signed by `signer`, and are not: a crash came between. */
  readonly unsigned: Digest[];
}

/** Reads the journal, and the whole book once. Only rollouts of this worker are taken up. */
export async function recoverRollouts(
  store: BlobStore,
  { directory, ...whose }: { directory: string; worker: string; signer?: PublicKey | undefined },
): Promise<Recovered> {
  const { closed, unsigned, cutShort } = await readBook(store, whose);
  const { journal, rollouts } = readJournal(directory);
  const recovered: Recovered = { journal, open: [], halfClosed: [], closed, unsigned };
  for (const [id, { rollout, isEmpty, places }] of rollouts) {
    // Without its opening only remains are left of a rollout that is sealed.
    const closing = cutShort.get(id);
    if (rollout === undefined || isEmpty || closed.has(id)) journal.release(places);
    else if (closing === undefined) recovered.open.push(rollout);
    else recovered.halfClosed.push({ rollout, closed: closing });
  }
  journal.tidy();
  return recovered;
}

interface Found {
  rollout?: OpenRollout;
  /** Closed without a call, and so without an artifact. */
  isEmpty?: boolean;
  /** Of everything about it. */
  readonly places: LogPlace[];
}

function readJournal(directory: string): { journal: Journal; rollouts: Map<Id, Found> } {
  const rollouts = new Map<Id, Found>();
  const foundOf = (id: Id, place: LogPlace): Found => {
    const found = rollouts.get(id) ?? { places: [] };
    rollouts.set(id, found);
    found.places.push(place);
    return found;
  };
  const journal = Journal.open(directory, {
    event({ rollout: id, event }, place) {
      const found = foundOf(id, place);
      if (event.kind === "opened") found.rollout = new OpenRollout(id, event);
      if (event.kind === "graded") found.rollout?.grades.push(event);
      if (event.kind === "closed") found.isEmpty = true;
      found.rollout?.events.push(place);
    },
    called(facts, place) {
      const { rollout } = foundOf(facts.rollout, place);
      if (rollout === undefined) return;
      rollout.addCall(place, facts);
      rollout.lastUsedMs = Math.max(rollout.lastUsedMs, facts.startedAtMs + facts.durationMs);
    },
  });
  return { journal, rollouts };
}

/** What the book says of a rollout that was sealed. */
interface Sealed {
  worker?: string;
  /** More than one where a crash cut the first sealing short. */
  readonly closings: EventOf<"closed">[];
  readonly calls: Set<number>;
}

interface BookFindings extends Pick<Recovered, "closed" | "unsigned"> {
  /** Rollouts whose closing is there, and whose artifact is not. */
  readonly cutShort: Map<string, EventOf<"closed">>;
}

async function readBook(
  store: BlobStore,
  { worker, signer }: { worker: string; signer?: PublicKey | undefined },
): Promise<BookFindings> {
  const all = new Map<string, Sealed>();
  const feedback = new Map<Digest, Feedback[]>();
  const signed = new Set<Digest>();
  for await (const item of store.scan()) {
    if (item.type !== "blob") continue;
    if (item.kind === FeedbackType.kind) {
      const record = openRecord(FeedbackType, item.bytes, item.digest);
      feedback.set(record.subject, [...(feedback.get(record.subject) ?? []), record]);
    } else if (item.kind === Attestation.kind) {
      const attestation = openRecord(Attestation, item.bytes, item.digest);
      if (attestation.signer === signer) for (const subject of attestation.subjects) signed.add(subject);
    } else if (item.kind === RolloutEvent.kind) take(all, openRecord(RolloutEvent, item.bytes, item.digest));
  }
  const found: BookFindings = { closed: new Map(), unsigned: [], cutShort: new Map() };
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
    if (isOurs && !signed.has(known.envelope)) found.unsigned.push(known.envelope);
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
