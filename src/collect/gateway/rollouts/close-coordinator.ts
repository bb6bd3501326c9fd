/** Closes rollouts: waits until they are quiet, has them sealed, and lets the journal forget them. In: open rollouts, and
 *  how they are to end. Out: reports, once what they name is durable. Knows which closings are under way, and what was
 *  closed; does not know which rollouts are open, nor when one is to be closed. */
import { type Clock, type Digest, type Json, reasonOf } from "../../../base/index.ts";
import type { Ending, PublicKey, Signer } from "../../../contract/index.ts";
import { type BlobStore, makeSealer } from "../../../store/index.ts";
import type {
  ClosedRollout,
  ClosedRollouts,
  EmptyRollout,
  EventOf,
  Journal,
  OpenRollout,
} from "../journal/index.ts";
import type { Metrics } from "../metrics.ts";
import { type Drift, endingOf, type Sealing, type SealTask } from "../sealing/index.ts";
import { endingOfDamaged } from "./lost-calls.ts";
import { isSingle } from "./opening.ts";

export interface CloseReport {
  readonly id: string;
  readonly ending: Ending;
  readonly calls: number;
  /** Absent if there was no call, and so nothing to seal. */
  readonly content?: Digest;
  readonly envelope?: Digest;
  readonly signedBy?: PublicKey;
  /** What admission said, where there is one. */
  readonly receipt?: Digest;
}

export interface Closing {
  readonly ending?: Ending | undefined;
  readonly scores?: EventOf<"closed">["scores"] | undefined;
  readonly finalState?: Json | undefined;
}

/** A closing as the journal knows it: the final state is a blob already. */
export type ToClose = Pick<SealTask, "ending" | "scores" | "finalState">;

export interface ClosingsOptions {
  /** Takes the signatures that a crash left out. */
  readonly store: Pick<BlobStore, "put" | "flush">;
  readonly journal: Journal;
  readonly sealing: Sealing;
  readonly closed: ClosedRollouts;
  readonly signer: Signer | undefined;
  readonly clock: Clock;
  readonly metrics: Metrics;
  /** For what nobody else will hear of. */
  readonly log: (line: string) => void;
  /** A rollout is not open any more. */
  readonly onClosed: (rollout: OpenRollout) => void;
}

/** Rollouts closed without a call that are remembered by their ids. */
const EMPTY_REMEMBERED = 10_000;

export class Closings {
  readonly #with: ClosingsOptions;
  readonly #empty = new Map<string, EmptyRollout>();
  readonly #underWay = new Set<Promise<unknown>>();

  constructor(options: ClosingsOptions) {
    this.#with = options;
  }

  /** A closing that is under way stands: a rollout is sealed, and leaves the journal, once. */
  begin(rollout: OpenRollout, closing: ToClose, { isUrgent = false } = {}): Promise<CloseReport> {
    if (rollout.closing !== undefined) return rollout.closing as Promise<CloseReport>;
    const report = this.#close(rollout, closing, { isUrgent });
    rollout.closing = report;
    this.#hold(report);
    // What could not be closed is open: whoever asks again may have more luck.
    report.catch((error) => {
      rollout.closing = undefined;
      this.#with.metrics.count("rollbook_gateway_sealing_failures_total");
      this.#with.log(`rollout ${rollout.id} could not be sealed and stays open: ${reasonOf(error)}`);
    });
    return report;
  }

  async #close(
    rollout: OpenRollout,
    closing: ToClose,
    { isUrgent }: { isUrgent: boolean },
  ): Promise<CloseReport> {
    if (rollout.active > 0) await new Promise<void>((done) => rollout.whenQuiet.push(done));
    const isEmpty = rollout.calls.size === 0;
    const closed = await (isEmpty
      ? this.#closeEmpty(rollout, closing)
      : this.#seal(rollout, closing, { isUrgent }));
    const event = isSealed(closed) ? "sealed" : "empty";
    this.#with.metrics.count("rollbook_gateway_rollouts_total", { event });
    this.#with.onClosed(rollout);
    return this.reportOf(rollout.id, closed);
  }

  /** The journal forgets a rollout once its name is among those of the closed ones. */
  async #letGo(rollout: OpenRollout, closed: ClosedRollout): Promise<void> {
    this.#with.closed.add(rollout.id, closed);
    try {
      await this.#with.closed.saved();
      this.#release(rollout);
    } catch (error) {
      this.#with.log(`rollout ${rollout.id} is sealed and stays in the journal: ${reasonOf(error)}`);
    }
  }

  #release({ calls, events }: OpenRollout): void {
    this.#with.journal.release(calls.values());
    this.#with.journal.release(events);
  }

  async #closeEmpty(rollout: OpenRollout, closing: ToClose): Promise<EmptyRollout> {
    const { journal, clock } = this.#with;
    const { scores = [], finalState } = closing;
    const ending = closing.ending ?? endingOf(undefined, rollout.capped);
    const state = finalState === undefined ? {} : { finalState: finalState.digest };
    const event = { kind: "closed", ending, scores, ...state, atMs: clock.nowMs() } as const;
    rollout.events.push(journal.event(rollout.id, event));
    await journal.flush();
    if (!isSingle(rollout)) this.#rememberEmpty(rollout.id, { ending });
    this.#release(rollout);
    return { ending };
  }

  async #seal(
    rollout: OpenRollout,
    closing: ToClose,
    { isUrgent }: { isUrgent: boolean },
  ): Promise<ClosedRollout> {
    const { journal, sealing, clock, metrics } = this.#with;
    await journal.flush();
    const { events, capped, pendingDeliveries: marks, lostCalls: lost } = rollout;
    const indexes = [...rollout.calls.keys()];
    if (indexes.length > 1) indexes.sort((a, b) => a - b);
    const { content, envelope, receipt, ...report } = await sealing.seal({
      task: {
        ...{ isUrgent, ...placesOf(rollout, indexes), marks, capped, endedAtMs: clock.nowMs() },
        ending: lost.length === 0 ? closing.ending : endingOfDamaged(closing.ending, lost),
        scores: closing.scores,
        finalState: closing.finalState,
      },
      onJournaled: (place) => events.push(place),
    });
    this.#tellUngraded(rollout);
    for (const drift in report.drifts)
      metrics.count("rollbook_gateway_drift_total", { drift }, report.drifts[drift as Drift]);
    const closed: ClosedRollout = {
      ...{ content, envelope, ending: report.ending, calls: indexes, grades: rollout.grades },
      ...(receipt === undefined ? {} : { receipt }),
    };
    if (report.isNamed) this.#release(rollout);
    else this.#hold(this.#letGo(rollout, closed));
    return closed;
  }

  /** Outcomes of calls that a crash cut short, or that are in a part of the journal that is gone. */
  #tellUngraded({ id, grades, calls }: OpenRollout): void {
    for (const { call, name, idempotencyKey } of grades)
      if (call !== undefined && !calls.has(call))
        this.#with.log(
          `rollout ${id} is sealed without outcome ${name} (key ${JSON.stringify(idempotencyKey)}): its call ${call} is not in the journal`,
        );
  }

  /** What was closed under that name. */
  get(id: string): ClosedRollout | EmptyRollout | undefined {
    return this.#empty.get(id) ?? this.#with.closed.get(id);
  }

  /** The name of a rollout that was closed without a call is used again. */
  reopened(id: string): void {
    this.#empty.delete(id);
  }

  reportOf(id: string, closed: ClosedRollout | EmptyRollout): CloseReport {
    const { ending } = closed;
    if (!isSealed(closed)) return { id, ending, calls: 0 };
    const { content, envelope, calls, receipt } = closed;
    const signedBy = this.#with.signer?.publicKey;
    return {
      ...{ id, ending, calls: calls.length, content, envelope },
      ...(signedBy === undefined ? {} : { signedBy }),
      ...(receipt === undefined ? {} : { receipt }),
    };
  }

  /** Resolves when nothing is being sealed any more. */
  async settle(): Promise<void> {
    while (this.#underWay.size > 0) await Promise.allSettled(this.#underWay);
  }

  /** Signs what a crash left unsigned. Once more what the crash left whole: nobody looks which. */
  async sign(rollouts: readonly ClosedRollout[]): Promise<void> {
    const sealer = makeSealer(this.#with.store, this.#with.signer);
    const signing = rollouts.map(({ envelope, receipt }) =>
      sealer.add({
        ...{ envelope: { digest: envelope }, blobs: [] },
        ...(receipt === undefined ? {} : { others: [receipt] }),
      }),
    );
    await Promise.all(signing);
  }

  #rememberEmpty(id: string, closed: EmptyRollout): void {
    this.#empty.set(id, closed);
    if (this.#empty.size <= EMPTY_REMEMBERED) return;
    for (const oldest of this.#empty.keys()) {
      this.#empty.delete(oldest);
      return;
    }
  }

  /** A stop waits for it, whatever becomes of it. */
  #hold(work: Promise<unknown>): void {
    this.#underWay.add(work);
    const done = () => this.#underWay.delete(work);
    work.then(done, done);
  }
}

/** Runs for every call without a rollout: by hand, and nothing but numbers. */
function placesOf(
  { events, calls }: OpenRollout,
  indexes: readonly number[],
): Pick<SealTask, "events" | "calls"> {
  const numbers: { events: number[]; calls: number[] } = { events: [], calls: [] };
  for (const { segment, offset, bytes } of events) numbers.events.push(segment, offset, bytes);
  for (const index of indexes) {
    const { segment, offset, bytes } = calls.get(index)!;
    numbers.calls.push(index, segment, offset, bytes);
  }
  return numbers;
}

export function isSealed(closed: ClosedRollout | EmptyRollout): closed is ClosedRollout {
  return "content" in closed;
}
