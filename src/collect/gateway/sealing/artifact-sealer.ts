/** Seals a rollout: reads its calls from the journal, puts them into the book, has the artifact admitted, and
 *  commits it. In: a finished rollout, by its places. Out: the digests of a durable artifact. Does not decide when
 *  to seal. Does not change the journal: the close coordinator releases the entries. */
import { type Digest, type Id, parseId, reasonOf } from "../../../base/index.ts";
import {
  Attestation,
  attestationText,
  FINAL_STATE_KIND,
  type PublicKey,
  type Receipt,
  RolloutEvent,
  type Sealed,
  type SealedBlob,
  type SealedRollout,
  seal,
} from "../../../contract/index.ts";
import {
  attestedTogether,
  type BlobStore,
  makeGroupSealer,
  type Sealable,
  type Sealer,
  subjectsOf,
} from "../../../store/index.ts";
import { type Admission, sealReceipt } from "../../receipt.ts";
import { newRevisions } from "../../revision-records.ts";
import {
  type EventOf,
  eventText,
  type FeedbackEvent,
  type JournalReader,
  type OpenedEvent,
} from "../journal/index.ts";
import { CallSealer } from "./call-sealer.ts";
import { feedbackFor } from "./feedback-for.ts";
import type { Drift } from "./message-tree.ts";
import { RolloutBuilder } from "./rollout-builder.ts";
import { endingOf, sealOpenRollout } from "./seal-rollout.ts";
import {
  type AdmittedArtifact,
  type ClosedEvent,
  placeAt,
  type SealReport,
  type SealTask,
  type WorkerQuestion,
} from "./thread-protocol.ts";

interface ArtifactSealerOptions {
  readonly store: Pick<BlobStore, "put" | "flush">;
  readonly journal: Pick<JournalReader, "event" | "called">;
  /** Public key of the signer. */
  readonly signer: PublicKey | undefined;
  /** Journals the closings, and returns the signatures of the attestations. */
  readonly commit: (
    closings: readonly ClosedEvent[],
    attestations: readonly string[],
  ) => Promise<readonly string[]>;
  readonly admit?:
    | ((artifact: Extract<WorkerQuestion, { kind: "admit" }>["artifact"]) => Promise<AdmittedArtifact>)
    | undefined;
  readonly gatewayName: string;
  /** Milliseconds to read the calls of one rollout. The remaining calls are sealed unread. */
  readonly readMs: number;
  /** A monotonic clock in milliseconds. */
  readonly steadyMs: () => number;
}

/** A commit costs a signature, two disk writes and messages between threads, for any number of rollouts. A rollout
 *  without a waiting client waits up to GATHER_MS for others, or until GATHERED rollouts are there. */
const GATHER_MS = 25;
const GATHERED = 128;
/** Bytes of the journal to read before other work gets a turn. */
const BYTES_PER_TURN = 512 * 1024;

interface ToCommit extends Sealable {
  readonly closing: ClosedEvent;
  readonly finalState: SealTask["finalState"];
}

/** Facts of a rollout in the journal besides its calls. */
interface Told {
  readonly id: Id;
  readonly opening: OpenedEvent;
  /** The bytes of the opening in the journal. */
  readonly openingBytes: Uint8Array;
  readonly feedback: readonly FeedbackEvent[];
}

export class ArtifactSealer {
  readonly #deps: ArtifactSealerOptions;
  readonly #gatewayName: Id;
  readonly #callSealer: CallSealer;
  readonly #sealer: Sealer<ToCommit>;
  /** Revisions whose records this sealer has sealed. */
  readonly #revisions = new Set<string>();

  constructor(options: ArtifactSealerOptions) {
    this.#deps = options;
    this.#gatewayName = parseId(options.gatewayName, "worker");
    this.#callSealer = new CallSealer(options.store);
    this.#sealer = makeGroupSealer(options.store, {
      enough: GATHERED,
      prepare: (group) => this.#prepare(group),
    });
  }

  /** Resolves when the artifact is durable. */
  async seal(task: SealTask): Promise<SealReport> {
    const { endedAtMs, finalState } = task;
    if (finalState?.bytes !== undefined) this.#deps.store.put(FINAL_STATE_KIND, finalState.bytes);
    const rollout = this.#toldOf(task);
    const drifts: Partial<Record<Drift, number>> = {};
    const remarks: string[] = [];
    const builder = await this.#builderOf(task, { drifts, remarks });
    const closing = {
      ending: task.ending ?? endingOf(builder, task.capped),
      scores: task.scores ?? [],
      ...(finalState === undefined ? {} : { finalState: finalState.digest }),
    };
    const sealed = sealedOf(rollout, builder, {
      ...{ closing: { ...closing, worker: this.#gatewayName, endedAtMs }, remarks },
    });
    const calls = [...builder.calls.keys()];
    const isHeld = finalState?.bytes !== undefined;
    const others = [...builder.signed, ...(isHeld ? [finalState.digest] : [])];
    const told = { ...rollout, task, calls, others };
    const receipt = await this.#commit(told, sealed, { ...closing, atMs: endedAtMs });
    const { content, envelope } = sealed;
    return {
      ...{ content: content.digest, envelope: envelope.digest, ending: closing.ending },
      ...{ ...receipt, drifts, remarks },
    };
  }

  async #commit(
    {
      id,
      openingBytes,
      feedback,
      task,
      calls,
      others,
    }: Told & Required<Pick<Sealable, "others">> & { task: SealTask; calls: readonly number[] },
    sealed: SealedRollout,
    closing: Pick<EventOf<"closed">, "ending" | "scores" | "finalState" | "atMs">,
  ): Promise<{ receipt?: Digest }> {
    const { signer } = this.#deps;
    const admitted = await this.#admit(sealed);
    const receipt = admitted === undefined ? {} : { receipt: admitted.receipt.digest };
    const envelope = sealed.envelope.digest;
    const event = eventText(id, {
      ...{ kind: "closed", ...closing, envelope, ...receipt },
      ...(signer === undefined ? {} : { signer }),
    });
    const events = [openingBytes, Buffer.from(event)].map((bytes) => ({ kind: RolloutEvent.kind, bytes }));
    const closed = { content: sealed.content.digest, calls };
    const said = [...feedback.flatMap((event) => feedbackFor(closed, event)), ...(admitted?.blobs ?? [])];
    const revisions = newRevisions(sealed.content.record.streams, this.#revisions);
    try {
      const toCommit: ToCommit = {
        envelope: sealed.envelope,
        // The envelope stays last: if it exists, all other blobs exist.
        blobs: [...events, ...revisions, ...sealed.blobs.slice(0, -1), ...said, sealed.envelope],
        ...{ closing: { number: task.number, event }, finalState: task.finalState },
        others,
      };
      await this.#sealer.add(toCommit, task.isUrgent ? 0 : GATHER_MS);
    } catch (error) {
      // Revisions that did not become durable are sealed with the next rollout. Durable ones are stored once.
      this.#revisions.clear();
      throw error;
    }
    return receipt;
  }

  /** Journals the closing first. After a crash the closing names the envelope to look for. If the envelope is
   *  missing, the closing tells how to seal again. Everything that the journal names must be durable before. */
  async #prepare(group: readonly ToCommit[]): Promise<readonly SealedBlob[]> {
    const { store, signer, commit } = this.#deps;
    if (group.some(({ finalState }) => finalState?.bytes !== undefined)) await store.flush();
    const closings = group.map(({ closing }) => closing);
    if (signer === undefined) {
      await commit(closings, []);
      return [];
    }
    const lists = attestedTogether(subjectsOf(group));
    const signatures = await commit(
      closings,
      lists.map((subjects) => attestationText(signer, subjects)),
    );
    return lists.map((subjects, i) => seal(Attestation, { signer, subjects, signature: signatures[i]! }));
  }

  #toldOf({ events }: SealTask): Told {
    const { record, bytes } = this.#deps.journal.event(placeAt(events, 0));
    const feedback: FeedbackEvent[] = [];
    for (let at = 3; at < events.length; at += 3) {
      const { event } = this.#deps.journal.event(placeAt(events, at)).record;
      if (event.kind === "graded") feedback.push(event);
    }
    return { id: record.rollout, opening: record.event as OpenedEvent, openingBytes: bytes, feedback };
  }

  /** Reads the calls and puts them into the book, in order. */
  async #builderOf(
    { calls, marks, isRaw = false }: SealTask,
    { drifts, remarks }: { drifts: Partial<Record<Drift, number>>; remarks: string[] },
  ): Promise<RolloutBuilder> {
    const { journal, steadyMs, readMs } = this.#deps;
    const builder = new RolloutBuilder();
    const deliveries = [];
    let bytes = 0;
    let unread = 0;
    // The time of other work's turns does not count.
    let leftMs = isRaw ? 0 : readMs;
    for (let at = 0; at < calls.length; at += 4) {
      const place = placeAt(calls, at + 1);
      const entry = journal.called(place);
      const startMs = steadyMs();
      const drift = this.#callSealer.add(builder, entry, { isRaw: leftMs <= 0 });
      if (leftMs <= 0) unread++;
      leftMs -= steadyMs() - startMs;
      drifts[drift] = (drifts[drift] ?? 0) + 1;
      deliveries.push(...entry.deliveries);
      bytes += place.bytes;
      if (bytes < BYTES_PER_TURN) continue;
      bytes = 0;
      await new Promise(setImmediate);
    }
    if (unread > 0)
      remarks.push(
        `${unread} of its calls were sealed unread: their bodies are kept whole, without messages`,
      );
    // A delivery that was not marked before a crash stays unknown, unless a later prompt contains the reply.
    for (const { call, delivery } of [...deliveries, ...marks]) builder.mark(call, delivery);
    return builder;
  }

  async #admit(sealed: SealedRollout): Promise<AdmissionRecords | undefined> {
    const { admit } = this.#deps;
    if (admit === undefined) return undefined;
    const { content, envelope } = sealed;
    const artifact = { content: content.record, envelope: envelope.record, digest: content.digest };
    const { admission, atMs } = await admit(artifact);
    return receiptFor(sealed, admission, atMs);
  }
}

/** Bad tokens of a model, or bad choices of a router, must not prevent the sealing of a rollout. Parts that do not
 *  fit a record are left out and logged. */
function sealedOf(
  rollout: Told,
  builder: RolloutBuilder,
  { closing, remarks }: { closing: Parameters<typeof sealOpenRollout>[2]; remarks: string[] },
): SealedRollout {
  const leaveOut = [
    { what: "token streams", clear: () => builder.tokens.clear() },
    { what: "steps of its router", clear: () => builder.steps.splice(0) },
  ];
  for (const { what, clear } of leaveOut) {
    try {
      return sealOpenRollout(rollout, builder, closing);
    } catch (error) {
      remarks.push(`it is sealed without the ${what}: ${reasonOf(error)}`);
      clear();
    }
  }
  return sealOpenRollout(rollout, builder, closing);
}

interface AdmissionRecords {
  readonly receipt: Sealed<Receipt>;
  /** All records of the admission, including the receipt. */
  readonly blobs: readonly SealedBlob[];
}

/** The receipt names no claim. The worker server decides if the artifact is the result of an item, because it knows
 *  if the claim still holds. */
export function receiptFor(
  { content, envelope }: SealedRollout,
  admission: Admission,
  atMs: number,
): AdmissionRecords {
  const receipt = sealReceipt(admission, { subject: content.digest, atMs, worker: envelope.record.worker });
  return { receipt, blobs: [...(admission.records ?? []), receipt] };
}
