/** Closes a rollout: reads its calls back from the journal, puts them into the book, has the artifact judged, and seals
 *  it. In: an open rollout in which nothing happens any more. Out: what is known of it from then on, durable. Does not
 *  decide when, and leaves the journal as it is: whoever keeps the rollout lets go of it. */
import type { Clock } from "../../base/clock.ts";
import type { Digest } from "../../base/digest.ts";
import { type Id, parseId } from "../../base/ids.ts";
import {
  type Receipt,
  RolloutEvent,
  type Sealed,
  type SealedBlob,
  type SealedRollout,
  type Signer,
} from "../../contract/index.ts";
import type { BlobStore } from "../../store/index.ts";
import { makeSealer, type Sealer } from "../../store/sealer.ts";
import { type Admit, sealReceipt } from "../admission.ts";
import { newRevisions } from "../revision-records.ts";
import type { ClosedRollout, EmptyRollout } from "./closed-rollouts.ts";
import { feedbackFor } from "./grades.ts";
import { eventBytes, type Journal } from "./journal.ts";
import type { Metrics } from "./metrics.ts";
import type { EventOf, OpenRollout } from "./open-rollout.ts";
import { isSingle } from "./opening.ts";
import type { Recorder } from "./recorder.ts";
import { RolloutRecord } from "./rollout-record.ts";
import { endingOf, sealOpenRollout } from "./seal-rollout.ts";

/** A closing as the journal knows it: the final state is a blob already. */
export interface ToClose {
  readonly ending?: EventOf<"closed">["ending"] | undefined;
  readonly scores?: EventOf<"closed">["scores"] | undefined;
  readonly finalState?: Digest | undefined;
}

export interface CloserOptions {
  readonly store: Pick<BlobStore, "put" | "flush">;
  readonly journal: Journal;
  readonly recorder: Recorder;
  readonly signer: Signer | undefined;
  readonly clock: Clock;
  readonly metrics: Metrics;
  readonly admit?: Admit | undefined;
  /** The name of the gateway. */
  readonly worker: string;
}

export class Closer {
  readonly #with: CloserOptions;
  readonly #worker: Id;
  readonly #sealer: Sealer;
  /** Revisions whose records this gateway has sealed. */
  readonly #revisions = new Set<string>();

  constructor(options: CloserOptions) {
    this.#with = options;
    this.#worker = parseId(options.worker, "worker");
    this.#sealer = makeSealer(options.store, options.signer);
  }

  /** Signs what a crash left unsigned. Once more what the crash left whole: nobody looks which. */
  async sign(rollouts: readonly ClosedRollout[]): Promise<void> {
    const signing = rollouts.map(({ envelope, receipt }) =>
      this.#sealer.add({
        ...{ envelope: { digest: envelope }, blobs: [] },
        ...(receipt === undefined ? {} : { others: [receipt] }),
      }),
    );
    await Promise.all(signing);
  }

  async close(rollout: OpenRollout, closing: ToClose): Promise<ClosedRollout | EmptyRollout> {
    const record = await this.#recordOf(rollout);
    const { finalState } = closing;
    const told = {
      ending: closing.ending ?? endingOf(record, rollout.capped),
      scores: closing.scores ?? [],
      ...(finalState === undefined ? {} : { finalState }),
    };
    const endedAtMs = this.#with.clock.nowMs();
    const sealed = sealOpenRollout(rollout, record, { ...told, worker: this.#worker, endedAtMs });
    if (sealed === undefined) {
      const { journal } = this.#with;
      rollout.events.push(journal.event(rollout.id, { kind: "closed", ...told, atMs: endedAtMs }));
      await journal.flush();
      return { ending: told.ending };
    }
    return this.#seal(rollout, sealed, { ...told, atMs: endedAtMs });
  }

  async #seal(
    rollout: OpenRollout,
    sealed: SealedRollout,
    told: Pick<EventOf<"closed">, "ending" | "scores" | "finalState" | "atMs">,
  ): Promise<ClosedRollout> {
    const { signer, journal, store } = this.#with;
    const judged = await this.#judge(sealed);
    const receipt = judged === undefined ? {} : { receipt: judged.receipt.digest };
    const envelope = sealed.envelope.digest;
    const closing: EventOf<"closed"> = {
      ...{ kind: "closed", ...told, envelope, ...receipt },
      ...(signer === undefined ? {} : { signer: signer.publicKey }),
    };
    // What the journal names must be there.
    if (told.finalState !== undefined) await store.flush();
    // In the journal first: after a crash it says which envelope to look for, and without it how to seal again.
    rollout.events.push(journal.event(rollout.id, closing));
    await (isSingle(rollout) ? journal.flushSoon() : journal.flush());
    this.#putEvent(rollout.id, rollout.opening);
    this.#putEvent(rollout.id, closing);
    const closed: ClosedRollout = {
      ...{ content: sealed.content.digest, envelope, ending: told.ending, ...receipt },
      calls: [...rollout.calls.keys()].sort((a, b) => a - b),
      grades: rollout.grades,
    };
    const said = [...rollout.grades.flatMap((grade) => feedbackFor(closed, grade)), ...(judged?.blobs ?? [])];
    const revisions = newRevisions(sealed.content.record.streams, this.#revisions);
    try {
      await this.#sealer.add({
        envelope: sealed.envelope,
        // The envelope stays last: where it is, everything is.
        blobs: [...revisions, ...sealed.blobs.slice(0, -1), ...said, sealed.envelope],
        ...(judged === undefined ? {} : { others: [judged.receipt.digest] }),
      });
    } catch (error) {
      // What did not become durable is sealed with the next; what did, is there once.
      this.#revisions.clear();
      throw error;
    }
    return closed;
  }

  /** Reads the calls back and puts them into the book, in order; calls in progress have their turns in between. */
  async #recordOf(rollout: OpenRollout): Promise<RolloutRecord> {
    const { journal, recorder, metrics } = this.#with;
    const record = new RolloutRecord();
    if (rollout.calls.size > 0) await journal.flush();
    const marks = [];
    for (const [, place] of [...rollout.calls].sort(([a], [b]) => a - b)) {
      const entry = journal.read(place);
      const drift = recorder.add(record, entry);
      metrics.count("rollbook_gateway_drift_total", { drift });
      marks.push(...entry.deliveries);
      await new Promise(setImmediate);
    }
    // What nobody marked before a crash stays unknown, unless a prompt proved it.
    for (const { call, delivery } of [...marks, ...rollout.pendingDeliveries]) record.mark(call, delivery);
    return record;
  }

  #putEvent(rollout: Id, event: RolloutEvent["event"]): void {
    this.#with.store.put(RolloutEvent.kind, eventBytes(rollout, event));
  }

  /** The receipt names no claim: whether the artifact is the result of an item is for the desk to say, which knows
   *  whether the claim still holds. */
  async #judge({
    content,
    envelope,
  }: SealedRollout): Promise<{ receipt: Sealed<Receipt>; blobs: readonly SealedBlob[] } | undefined> {
    const { admit, clock } = this.#with;
    if (admit === undefined) return undefined;
    const nowMs = clock.nowMs();
    const subject = content.digest;
    const artifact = { content: content.record, envelope: envelope.record, digest: subject, nowMs };
    const admission = await admit(artifact);
    const receipt = sealReceipt(admission, { subject, atMs: nowMs, worker: envelope.record.worker });
    return { receipt, blobs: [...(admission.records ?? []), receipt] };
  }
}
