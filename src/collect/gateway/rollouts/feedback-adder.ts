/** Adds feedback to rollouts, open or sealed. In: an outcome with its idempotency key. Out: an event in the journal
 *  while the rollout is open, a sealed record in the book afterwards. Both are durable. */
import type { Clock } from "../../../base/index.ts";
import type { Signer } from "../../../contract/index.ts";
import { attest, type BlobStore, signedAmong } from "../../../store/index.ts";
import type { FeedbackEvent, Journal } from "../journal/index.ts";
import { feedbackFor, type SealQueue } from "../sealing/index.ts";
import { HttpRefusal } from "../wire/index.ts";
import type { CloseCoordinator } from "./close-coordinator.ts";
import type { ClosedIndex } from "./closed-index.ts";
import type { OpenRollout } from "./open-rollout.ts";
import type { ClosedRollout, RolloutStates } from "./rollout-states.ts";

export type NewFeedback = Omit<FeedbackEvent, "kind" | "atMs">;

interface FeedbackAdderOptions {
  readonly store: Pick<BlobStore, "put" | "flush">;
  readonly journal: Journal;
  readonly closed: Pick<ClosedIndex, "load">;
  readonly sealing: Pick<SealQueue, "look">;
  readonly states: RolloutStates;
  readonly closing: Pick<CloseCoordinator, "handOverMany">;
  readonly signer: Signer | undefined;
  readonly clock: Clock;
}

export class FeedbackAdder {
  readonly #deps: FeedbackAdderOptions;
  /** Outcomes of sealed rollouts that are not durable yet. */
  readonly #pending = new Set<FeedbackEvent>();

  constructor(options: FeedbackAdderOptions) {
    this.#deps = options;
  }

  /** False if the identical outcome is already there. */
  async add(id: string, given: NewFeedback): Promise<boolean> {
    const { clock, states } = this.#deps;
    const event: FeedbackEvent = { kind: "graded", ...given, atMs: clock.nowMs() };
    const state = states.live(id);
    // A rollout in sealing takes its earlier feedback with it. This outcome waits and is added to the artifact. If the
    // sealing fails, the close request reports the failure.
    if (state?.kind === "closing") {
      await Promise.allSettled([state.report]);
      return this.add(id, given);
    }
    return state === undefined ? this.#addToClosed(id, event) : this.#addToOpen(state.rollout, event);
  }

  async #addToOpen(rollout: OpenRollout, event: FeedbackEvent): Promise<boolean> {
    const { journal } = this.#deps;
    const { id, feedback } = rollout;
    const isNew = isNewFeedback(id, event, { feedback, hasCall: (call) => rollout.hasCall(call) });
    if (isNew) {
      if (rollout.turns === 0)
        throw new HttpRefusal(
          409,
          "empty-rollout",
          `rollout ${id} has no call yet, and without a call nothing is recorded. Send the outcome after its first call.`,
        );
      rollout.events.push(journal.event(id, event));
      rollout.addFeedback(event);
    }
    // Also flushes for a repeated outcome: its first request may still be waiting for the disk.
    await journal.flush();
    return isNew;
  }

  async #addToClosed(id: string, event: FeedbackEvent): Promise<boolean> {
    const { store, signer, states, closing } = this.#deps;
    const loaded = await this.closed(id);
    // Another outcome may have arrived during the load. Only the state in memory includes it.
    const held = states.get(id);
    const before = held?.kind === "sealed" ? held.closed : loaded;
    const isNew = isNewFeedback(id, event, { ...before, hasCall: (call) => before.calls.includes(call) });
    if (!isNew) {
      await store.flush();
      return false;
    }
    const after = { ...before, feedback: [...before.feedback, event] };
    const records = feedbackFor(before, event);
    const signatures = signer === undefined ? [] : attest(signedAmong(records), signer);
    for (const { kind, bytes } of [...records, ...signatures]) store.put(kind, bytes);
    // From here on a repeated request waits for the same write.
    this.#pending.add(event);
    states.seals(id, after, false);
    let isKept = false;
    try {
      await store.flush();
      isKept = true;
    } finally {
      this.#settle(id, event, isKept);
    }
    closing.handOverMany();
    return true;
  }

  /** Ends the wait for one outcome, and removes the outcome if it was lost. Other outcomes of the rollout may still be
   *  on their way. */
  #settle(id: string, event: FeedbackEvent, isKept: boolean): void {
    const { states } = this.#deps;
    this.#pending.delete(event);
    const state = states.get(id);
    if (state?.kind !== "sealed") return;
    const { closed } = state;
    const feedback = isKept ? closed.feedback : closed.feedback.filter((each) => each !== event);
    const isDurable = !feedback.some((each) => this.#pending.has(each));
    states.seals(id, { ...closed, feedback }, isDurable);
  }

  /** Facts of a sealed rollout. */
  async closed(id: string): Promise<ClosedRollout> {
    const { closed, sealing, states } = this.#deps;
    const held = () => {
      const state = states.get(id);
      if (state?.kind === "sealed") return state.closed;
      if (state?.kind !== "empty") return undefined;
      throw new HttpRefusal(
        409,
        "empty-rollout",
        `rollout ${id} was closed without a call: there is no artifact to add an outcome to.`,
      );
    };
    // Another request may have loaded the rollout, and added to it, during this load.
    const loaded = held() ?? (await closed.load(id, (digests) => sealing.look(digests)));
    if (loaded === undefined) throw unknownRollout(id);
    return held() ?? loaded;
  }
}

/** False if the identical outcome is already there. */
function isNewFeedback(
  id: string,
  given: NewFeedback,
  { feedback, hasCall }: { feedback: readonly FeedbackEvent[]; hasCall: (call: number) => boolean },
): boolean {
  if (given.call !== undefined && !hasCall(given.call))
    throw new HttpRefusal(404, "unknown-call", `rollout ${id} has no call ${given.call}. Count from 0.`);
  const known = feedback.find((each) => each.idempotencyKey === given.idempotencyKey);
  if (known === undefined) return true;
  if (known.name === given.name && known.value === given.value && known.call === given.call) return false;
  throw new HttpRefusal(
    409,
    "key-reused",
    `the idempotency key ${JSON.stringify(given.idempotencyKey.slice(0, 80))} was used for another outcome (${known.name} ${known.value}), which counts. Use another key to add one.`,
  );
}

export function unknownRollout(id: string): HttpRefusal {
  const name = JSON.stringify(id.slice(0, 80));
  return new HttpRefusal(
    404,
    "unknown-rollout",
    `no rollout is called ${name}. A gateway takes whole ids only; POST /v1/rollouts opens a new one.`,
  );
}
