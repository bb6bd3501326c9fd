/** States of a gateway's rollouts: one map from id to state, and every transition. open → closing → sealed | empty |
 *  failed; a failed rollout accepts calls, and is closed again later. In: transitions. Out: states and counts. Holds
 *  every rollout that is not sealed, and those sealed since the last catalog update. closed-index.ts finds the
 *  others. Does no I/O. */
import type { Digest } from "../../../base/index.ts";
import type { Ending, PublicKey } from "../../../contract/index.ts";
import type { FeedbackEvent } from "../journal/index.ts";
import type { OpenRollout } from "./open-rollout.ts";
import { isSingle } from "./opening.ts";

export interface CloseReport {
  readonly id: string;
  readonly ending: Ending;
  readonly calls: number;
  /** Absent if there was no call, and so nothing to seal. */
  readonly content?: Digest;
  readonly envelope?: Digest;
  readonly signedBy?: PublicKey | undefined;
  /** Receipt of the admission, if there is one. */
  readonly receipt?: Digest | undefined;
  /** Names what a close without a call does not record. Absent if nothing is lost. */
  readonly discarded?: string | undefined;
}

/** Facts of a sealed rollout. */
export interface ClosedRollout {
  readonly content: Digest;
  readonly envelope: Digest;
  readonly ending: Ending;
  /** Numbers of its calls, in the order of the content. */
  readonly calls: readonly number[];
  /** Outcomes so far, to check idempotency keys. */
  readonly feedback: readonly FeedbackEvent[];
  readonly receipt?: Digest | undefined;
}

type RolloutState =
  | { readonly kind: "open"; readonly rollout: OpenRollout }
  | { readonly kind: "closing"; readonly rollout: OpenRollout; readonly report: Promise<CloseReport> }
  /** A rollout that could not be sealed. It stays open. */
  | { readonly kind: "failed"; readonly rollout: OpenRollout }
  /** `isDurable` is true if its outcomes are also in the book. */
  | { readonly kind: "sealed"; readonly closed: ClosedRollout; readonly isDurable: boolean }
  /** A rollout closed without a call, and so without an artifact. Its name may be used again. */
  | { readonly kind: "empty"; readonly report: CloseReport }
  /** The journal has calls of the rollout, but not its opening. */
  | { readonly kind: "torn" };

type LiveState = Extract<RolloutState, { rollout: OpenRollout }>;

/** Maximum number of remembered rollouts that were closed without a call. */
const MOST_EMPTY = 10_000;
/** Number of sealed rollouts in memory before the catalog takes them over. */
const MOST_SEALED = 20_000;

export class RolloutStates {
  readonly #states = new Map<string, RolloutState>();
  readonly #counts = { open: 0, closing: 0, failed: 0, sealed: 0, empty: 0, torn: 0 };
  #singles = 0;

  get(id: string): RolloutState | undefined {
    return this.#states.get(id);
  }

  /** The rollout of that name, unless it is closed. */
  live(id: string): LiveState | undefined {
    const state = this.#states.get(id);
    return isLive(state) ? state : undefined;
  }

  /** The rollout of that name, if it accepts calls. */
  enterable(id: string): OpenRollout | undefined {
    const state = this.live(id);
    return state === undefined || state.kind === "closing" ? undefined : state.rollout;
  }

  *allLive(): IterableIterator<LiveState> {
    if (this.#liveCount === 0) return;
    for (const state of this.#states.values()) if (isLive(state)) yield state;
  }

  /** Calls without a rollout that are in progress or not sealed yet. */
  get singles(): number {
    return this.#singles;
  }

  /** Rollouts that a client opened and that are not sealed yet. */
  get opened(): number {
    return this.#liveCount - this.#singles;
  }

  get hasManySealed(): boolean {
    return this.#counts.sealed > MOST_SEALED;
  }

  opens(rollout: OpenRollout): void {
    this.#set(rollout.id, { kind: "open", rollout });
  }

  closes(rollout: OpenRollout, report: Promise<CloseReport>): void {
    this.#set(rollout.id, { kind: "closing", rollout, report });
  }

  fails(rollout: OpenRollout): void {
    this.#set(rollout.id, { kind: "failed", rollout });
  }

  seals(id: string, closed: ClosedRollout, isDurable = true): void {
    this.#set(id, { kind: "sealed", closed, isDurable });
  }

  empties(rollout: OpenRollout, report: CloseReport): void {
    this.#set(rollout.id, { kind: "empty", report });
    // A single call is closed only once, so its state is not needed.
    if (isSingle(rollout)) this.#delete(rollout.id);
    if (this.#counts.empty <= MOST_EMPTY) return;
    for (const [oldest, { kind }] of this.#states) {
      if (kind !== "empty") continue;
      this.#delete(oldest);
      return;
    }
  }

  tears(id: string): void {
    this.#set(id, { kind: "torn" });
  }

  /** Collects the sealed rollouts that the next catalog update covers. Call the returned function after the update
   *  to remove them. If the catalog does not find the last of them, its file was replaced, and all stay in memory. */
  handOver(): (isFound: (id: string) => boolean) => void {
    const sealed = [...this.#states].filter(([, state]) => state.kind === "sealed" && state.isDurable);
    return (isFound) => {
      const last = sealed.at(-1);
      if (last !== undefined && !isFound(last[0])) return;
      for (const [id, state] of sealed) if (this.#states.get(id) === state) this.#delete(id);
    };
  }

  get #liveCount(): number {
    const { open, closing, failed } = this.#counts;
    return open + closing + failed;
  }

  #set(id: string, state: RolloutState): void {
    this.#delete(id);
    this.#states.set(id, state);
    this.#count(state, 1);
  }

  #delete(id: string): void {
    const before = this.#states.get(id);
    if (before === undefined) return;
    this.#states.delete(id);
    this.#count(before, -1);
  }

  #count(state: RolloutState, by: 1 | -1): void {
    this.#counts[state.kind] += by;
    if (isLive(state) && isSingle(state.rollout)) this.#singles += by;
  }
}

function isLive(state: RolloutState | undefined): state is LiveState {
  switch (state?.kind) {
    case "open":
    case "closing":
    case "failed":
      return true;
    case undefined:
    case "sealed":
    case "empty":
    case "torn":
      return false;
    default:
      return state satisfies never;
  }
}
