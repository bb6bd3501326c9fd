/** Closes rollouts: waits for their calls to end, has them sealed, and releases their journal entries. In: open
 *  rollouts, and their endings. Out: reports, once the artifacts are durable; and the states of the rollouts
 *  meanwhile. Does not decide when a rollout is closed. */
import { type Clock, given, type Json, plural, reasonOf } from "../../../base/index.ts";
import type { Signer } from "../../../contract/index.ts";
import { type BlobStore, makeSealer } from "../../../store/index.ts";
import type { Journal } from "../journal/index.ts";
import type { Metrics } from "../metrics.ts";
import { type Drift, endingOf, type SealQueue, type SealTask } from "../sealing/index.ts";
import type { ClosedIndex } from "./closed-index.ts";
import { endingOfDamaged } from "./lost-calls.ts";
import type { OpenRollout } from "./open-rollout.ts";
import { isSingle } from "./opening.ts";
import type { RecoveredArtifact } from "./recover.ts";
import type { ClosedRollout, CloseReport, RolloutStates } from "./rollout-states.ts";

/** Content of a close request from the owner of a rollout. */
export interface CloseRequest extends Pick<SealTask, "ending" | "scores"> {
  readonly finalState?: Json | undefined;
}

/** A closing in the form of the journal: the final state is already a blob. */
interface ToClose extends Pick<SealTask, "ending" | "scores" | "finalState"> {
  /** True if a client waits for the closing. */
  readonly isUrgent?: boolean;
}

export interface CloseCoordinatorOptions {
  /** Stores the signatures that are missing after a crash. */
  readonly store: Pick<BlobStore, "put" | "flush">;
  readonly journal: Journal;
  readonly sealing: SealQueue;
  readonly closed: Pick<ClosedIndex, "has" | "refresh">;
  readonly states: RolloutStates;
  readonly signer: Signer | undefined;
  readonly clock: Clock;
  readonly metrics: Metrics;
  /** Receives failures that no caller gets. */
  readonly log: (line: string) => void;
  /** Called after the close of every rollout that a client opened. */
  readonly onClosed?: ((rollout: OpenRollout, report: CloseReport) => void) | undefined;
}

export class CloseCoordinator {
  readonly #deps: CloseCoordinatorOptions;
  readonly #underWay = new Set<Promise<unknown>>();
  #isCataloguing = false;

  constructor(options: CloseCoordinatorOptions) {
    this.#deps = options;
  }

  /** Starts a closing, or returns the one in progress: a rollout is sealed, and leaves the journal, once. */
  begin(rollout: OpenRollout, closing: ToClose): Promise<CloseReport> {
    const { states, metrics, log } = this.#deps;
    const state = states.get(rollout.id);
    if (state?.kind === "closing") return state.report;
    const report = this.#close(rollout, closing);
    states.closes(rollout, report);
    this.#hold(report);
    // A rollout that could not be closed stays open: a later request may succeed.
    report.catch((error) => {
      states.fails(rollout);
      metrics.count("rollbook_gateway_sealing_failures_total");
      log(`rollout ${rollout.id} could not be sealed and stays open: ${reasonOf(error)}`);
    });
    return report;
  }

  /** Records that an artifact of that name is durable. */
  sealed(id: string, closed: ClosedRollout): void {
    this.#deps.states.seals(id, closed);
    this.handOverMany();
  }

  reportOf(id: string, { ending, calls, content, envelope, receipt }: ClosedRollout): CloseReport {
    const signedBy = this.#deps.signer?.publicKey;
    return { id, ending, calls: calls.length, content, envelope, signedBy, receipt };
  }

  /** Resolves when no sealing is in progress. */
  async settle(): Promise<void> {
    while (this.#underWay.size > 0) await Promise.allSettled(this.#underWay);
  }

  /** Completes artifacts that a crash left without a signature, or without a late outcome. Sealing is idempotent, so
   *  existing signatures do no harm. */
  async complete(artifacts: readonly RecoveredArtifact[]): Promise<void> {
    const { store, signer, journal } = this.#deps;
    const [signing, plain] = [makeSealer(store, signer), makeSealer(store)];
    const adding = artifacts.map(({ envelope, receipt, feedback, toSign }) =>
      (toSign || feedback.length > 0 ? signing : plain).add({
        ...{ envelope: { digest: envelope }, blobs: feedback },
        ...(receipt === undefined ? {} : { others: [receipt] }),
      }),
    );
    await Promise.all(adding);
    // The catalog must find these outcomes when a client sends them again.
    if (artifacts.some(({ feedback }) => feedback.length > 0)) await this.#deps.closed.refresh();
    for (const { places } of artifacts) journal.release(places);
  }

  async #close(rollout: OpenRollout, closing: ToClose): Promise<CloseReport> {
    if (rollout.active > 0) await new Promise<void>((done) => rollout.whenQuiet.push(done));
    const isEmpty = rollout.calls.size === 0;
    const report = await (isEmpty ? this.#closeEmpty(rollout, closing) : this.#seal(rollout, closing));
    const { journal, metrics, states } = this.#deps;
    journal.release(rollout.calls.values());
    journal.release(rollout.events);
    metrics.count("rollbook_gateway_rollouts_total", { event: isEmpty ? "empty" : "sealed" });
    metrics.set("rollbook_gateway_open_rollouts", states.opened);
    if (!isSingle(rollout)) this.#tellClosed(rollout, report);
    return report;
  }

  /** A failing listener must not reopen a sealed rollout. */
  #tellClosed(rollout: OpenRollout, report: CloseReport): void {
    try {
      this.#deps.onClosed?.(rollout, report);
    } catch (error) {
      this.#deps.log(`a listener failed when rollout ${rollout.id} was closed: ${reasonOf(error)}`);
    }
  }

  async #closeEmpty(rollout: OpenRollout, closing: ToClose): Promise<CloseReport> {
    const { journal, clock, states } = this.#deps;
    const { scores = [], finalState } = closing;
    const ending = closing.ending ?? endingOf(undefined, rollout.capped);
    const state = finalState === undefined ? {} : { finalState: finalState.digest };
    const event = { kind: "closed", ending, scores, ...state, atMs: clock.nowMs() } as const;
    rollout.events.push(journal.event(rollout.id, event));
    await journal.flush();
    const discarded = discardedOf(rollout, closing);
    const report = { id: rollout.id, ending, calls: 0, ...given({ discarded }) };
    states.empties(rollout, report);
    return report;
  }

  async #seal(rollout: OpenRollout, closing: ToClose): Promise<CloseReport> {
    const { journal, sealing, clock, metrics } = this.#deps;
    await journal.flush();
    const { events, capped, pendingDeliveries: marks, lostCalls: lost, feedback } = rollout;
    const indexes = [...rollout.calls.keys()];
    if (indexes.length > 1) indexes.sort((a, b) => a - b);
    const places = placesOf(rollout, indexes);
    const { content, envelope, ending, receipt, drifts, remarks } = await sealing.seal({
      task: {
        isUrgent: closing.isUrgent === true,
        events: places.events,
        calls: places.calls,
        marks,
        capped,
        ending: lost.length === 0 ? closing.ending : endingOfDamaged(closing.ending, lost),
        scores: closing.scores,
        finalState: closing.finalState,
        endedAtMs: clock.nowMs(),
      },
      onJournaled: (place) => events.push(place),
    });
    this.#tellLostFeedback(rollout);
    for (const remark of remarks) this.#deps.log(`rollout ${rollout.id}: ${remark}`);
    for (const drift in drifts)
      metrics.count("rollbook_gateway_drift_total", { drift }, drifts[drift as Drift]);
    const closed = { content, envelope, ending, calls: indexes, feedback, receipt };
    this.sealed(rollout.id, closed);
    return this.reportOf(rollout.id, closed);
  }

  /** Hands sealed rollouts over to the catalog, once many of them are in memory. */
  handOverMany(): void {
    if (this.#deps.states.hasManySealed && !this.#isCataloguing) this.#hold(this.#catalogue());
  }

  /** Updates the catalog, which then replaces the sealed rollouts held in memory. */
  async #catalogue(): Promise<void> {
    const { states, sealing, closed, log } = this.#deps;
    this.#isCataloguing = true;
    const forget = states.handOver();
    try {
      await sealing.syncCatalog();
      forget((id) => closed.has(id));
    } catch (error) {
      log(`the catalog could not be brought up to date, which is tried again: ${reasonOf(error)}`);
    }
    this.#isCataloguing = false;
  }

  /** Logs outcomes of calls that a crash cut off, or that were in a lost part of the journal. */
  #tellLostFeedback({ id, feedback, calls }: OpenRollout): void {
    for (const { call, name, idempotencyKey } of feedback)
      if (call !== undefined && !calls.has(call))
        this.#deps.log(
          `rollout ${id} is sealed without outcome ${name} (key ${JSON.stringify(idempotencyKey)}): its call ${call} is not in the journal`,
        );
  }

  /** Makes a stop wait for the work, also if the work fails. */
  #hold(work: Promise<unknown>): void {
    this.#underWay.add(work);
    const done = () => this.#underWay.delete(work);
    work.then(done, done);
  }
}

/** Without a call there is no artifact, which would hold these. */
function discardedOf({ feedback }: OpenRollout, { scores = [], finalState }: ToClose): string | undefined {
  const parts = [
    ...(scores.length > 0 ? [plural(scores.length, "score")] : []),
    ...(feedback.length > 0 ? [plural(feedback.length, "outcome")] : []),
    ...(finalState === undefined ? [] : ["a final state"]),
  ];
  return parts.length === 0
    ? undefined
    : `not recorded, because the rollout has no call: ${parts.join(", ")}`;
}

/** Runs for every call without a rollout, so it uses plain loops and only numbers. */
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
