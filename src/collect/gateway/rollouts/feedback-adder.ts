/** Adds outcomes to rollouts, open or sealed. In: an outcome with its idempotency key. Out: an event in the journal while the
 *  rollout is open, a sealed record in the book after that; durable either way. */
import type { Clock } from "../../../base/index.ts";
import type { Signer } from "../../../contract/index.ts";
import { attest, type BlobStore, signedAmong } from "../../../store/index.ts";
import {
  feedbackFor,
  type GradedEvent,
  isNewGrade,
  type Journal,
  type OpenRollout,
} from "../journal/index.ts";
import type { SealQueue } from "../sealing/index.ts";
import { HttpRefusal } from "../wire/index.ts";
import type { CloseCoordinator } from "./close-coordinator.ts";
import type { ClosedIndex } from "./closed-index.ts";
import type { ClosedRollout, RolloutStates } from "./rollout-states.ts";

export type NewGrade = Omit<GradedEvent, "kind" | "atMs">;

interface OutcomeAdderOptions {
  readonly store: Pick<BlobStore, "put" | "flush">;
  readonly journal: Journal;
  readonly closed: Pick<ClosedIndex, "load">;
  readonly sealing: Pick<SealQueue, "look">;
  readonly states: RolloutStates;
  readonly closing: Pick<CloseCoordinator, "handOverMany">;
  readonly signer: Signer | undefined;
  readonly clock: Clock;
}

export class OutcomeAdder {
  readonly #deps: OutcomeAdderOptions;

  constructor(options: OutcomeAdderOptions) {
    this.#deps = options;
  }

  /** False if the very same outcome is there already. */
  async grade(id: string, grade: NewGrade): Promise<boolean> {
    const { clock, states } = this.#deps;
    const event: GradedEvent = { kind: "graded", ...grade, atMs: clock.nowMs() };
    const state = states.live(id);
    // A rollout that is just being sealed takes its grades along; wait, and grade the artifact. Where there will be
    // none, the close request reports it.
    if (state?.kind === "closing") {
      await Promise.allSettled([state.report]);
      return this.grade(id, grade);
    }
    return state === undefined ? this.#gradeClosed(id, event) : this.#gradeOpen(state.rollout, event);
  }

  async #gradeOpen(rollout: OpenRollout, event: GradedEvent): Promise<boolean> {
    const { journal } = this.#deps;
    const { id, grades } = rollout;
    const isNew = isNewGrade(id, event, { grades, hasCall: (call) => rollout.hasCall(call) });
    if (isNew) {
      rollout.events.push(journal.event(id, event));
      rollout.addGrade(event);
    }
    // Also for an outcome that was brought before: that request may still be waiting for the disk.
    await journal.flush();
    return isNew;
  }

  async #gradeClosed(id: string, event: GradedEvent): Promise<boolean> {
    const { store, signer, states, closing } = this.#deps;
    const loaded = await this.closed(id);
    // Another outcome may have come in between: only what is held now has it.
    const held = states.get(id);
    const before = held?.kind === "sealed" ? held.closed : loaded;
    const isNew = isNewGrade(id, event, { ...before, hasCall: (call) => before.calls.includes(call) });
    if (!isNew) {
      await store.flush();
      return false;
    }
    const after = { ...before, grades: [...before.grades, event] };
    const feedback = feedbackFor(before, event);
    const signatures = signer === undefined ? [] : attest(signedAmong(feedback), signer);
    for (const { kind, bytes } of [...feedback, ...signatures]) store.put(kind, bytes);
    // A repeated request now waits for the same write.
    states.seals(id, after, false);
    try {
      await store.flush();
    } catch (error) {
      states.seals(id, before);
      throw error;
    }
    const state = states.get(id);
    if (state?.kind === "sealed" && state.closed === after) states.seals(id, after);
    closing.handOverMany();
    return true;
  }

  /** What is known of a rollout that is sealed. */
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
    // Somebody else may have read it, and graded it, meanwhile.
    const loaded = held() ?? (await closed.load(id, (digests) => sealing.look(digests)));
    if (loaded === undefined) throw unknownRollout(id);
    return held() ?? loaded;
  }
}

export function unknownRollout(id: string): HttpRefusal {
  const name = JSON.stringify(id.slice(0, 80));
  return new HttpRefusal(
    404,
    "unknown-rollout",
    `no rollout is called ${name}. Open it with POST /v1/rollouts.`,
  );
}
