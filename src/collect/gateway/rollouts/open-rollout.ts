/** State of an open rollout: its opening, its remaining limits, and the places of its calls in the journal. In:
 *  calls as they are journaled. Out: counts and places. Holds no messages. Does no I/O. */
import { type Id, KeyPrefix } from "../../../base/index.ts";
import { type Call, type Delivery, type EndingLimit, spentBy } from "../../../contract/index.ts";
import type { LogPlace } from "../../../store/index.ts";
import type { FeedbackEvent, OpenedEvent } from "../journal/index.ts";

export class OpenRollout {
  readonly id: Id;
  /** The id as it appears in a header, and in the journal. */
  readonly headerId: string;
  readonly idBytes: Buffer;
  /** Gives the draw key of a call from its number. */
  readonly callKeys: KeyPrefix;
  readonly opening: OpenedEvent;
  /** Places of its calls in the journal, by call number. */
  readonly calls = new Map<number, LogPlace>();
  /** Places of all its other entries in the journal. */
  readonly events: LogPlace[] = [];
  readonly feedback: FeedbackEvent[] = [];
  /** Delivery marks that are not in the journal yet. */
  pendingDeliveries: { call: number; delivery: Delivery }[] = [];
  /** Bytes of its calls in the journal. */
  bytes = 0;
  promptTokens = 0;
  completionTokens = 0;
  costUsd = 0;
  /** Calls with unknown cost. `costUsd` does not include them. */
  unpricedCalls = 0;
  /** Estimated cost of calls without usage. Used for the budget only, never recorded. */
  estimatedUsd = 0;
  /** Maximum cost of calls in progress, by call number. */
  readonly #reserved = new Map<number, number>();
  /** Calls of an earlier run without a recorded cost. */
  readonly unpriced: LogPlace[] = [];
  /** Recorded calls that the journal no longer has. */
  lostCalls: readonly number[] = [];
  /** Number of assigned call numbers: one per call, recorded or in progress. */
  started = 0;
  readonly #inProgress = new Set<number>();
  /** Called when no call is in progress any more. */
  readonly whenQuiet: (() => void)[] = [];
  lastUsedMs: number;
  /** The cap that ended the rollout, if any. */
  capped: EndingLimit | undefined;
  /** Status and reason of the last call, if the gateway refused it. Not recorded: the agent may make further calls. */
  lastRefusal: string | undefined;

  constructor(id: Id, opening: OpenedEvent) {
    this.id = id;
    this.idBytes = Buffer.from(id);
    this.headerId = encodeURIComponent(id);
    this.callKeys = new KeyPrefix(`${id}.`);
    this.opening = opening;
    this.lastUsedMs = opening.atMs;
  }

  get turns(): number {
    return this.started;
  }

  /** Number of calls in progress. */
  get active(): number {
    return this.#inProgress.size;
  }

  /** Assigns the number of a new call. */
  begin(): number {
    this.#inProgress.add(this.started);
    return this.started++;
  }

  end(call: number): void {
    this.#inProgress.delete(call);
  }

  /** True if the call is recorded or in progress. */
  hasCall(call: number): boolean {
    return this.calls.has(call) || this.#inProgress.has(call);
  }

  get spentUsd(): number {
    return this.costUsd + this.estimatedUsd;
  }

  get reservedUsd(): number {
    let sum = 0;
    for (const each of this.#reserved.values()) sum += each;
    return sum;
  }

  /** Reserves cost for the next call, until the call is added. */
  reserve(usd: number): void {
    this.#reserved.set(this.started, usd);
  }

  /** Withdraws the number of the call that began last. */
  takeBack(): void {
    this.#reserved.delete(--this.started);
  }

  /** Frees reservations of calls that were never recorded. Called when no call is in progress. */
  freeReserved(): void {
    if (this.#reserved.size > 0) this.#reserved.clear();
  }

  /** Adds the place of a call, and its usage if the upstream reported it. */
  addCall(
    place: LogPlace,
    call: {
      index: number;
      status: number;
      usage?: Call["usage"];
      costUsd?: number | undefined;
      estimatedUsd?: number | undefined;
    },
  ): void {
    const { index, usage, estimatedUsd } = call;
    const spent = spentBy(call);
    this.calls.set(index, place);
    this.lastRefusal = undefined;
    this.bytes += place.bytes;
    this.#reserved.delete(index);
    this.promptTokens += usage?.promptTokens ?? 0;
    this.completionTokens += usage?.completionTokens ?? 0;
    if (spent === undefined) this.unpricedCalls++;
    else this.costUsd += spent;
    this.estimatedUsd += estimatedUsd ?? 0;
    if (index >= this.started) this.started = index + 1;
  }

  /** A call with an outcome keeps its number even after a crash, so the outcome cannot apply to another call. */
  addFeedback(event: FeedbackEvent): void {
    this.feedback.push(event);
    if (event.call !== undefined && event.call >= this.started) this.started = event.call + 1;
  }

  mark(call: number, delivery: Delivery): void {
    this.pendingDeliveries.push({ call, delivery });
  }

  takeDeliveries(): readonly { call: number; delivery: Delivery }[] {
    const taken = this.pendingDeliveries;
    if (taken.length > 0) this.pendingDeliveries = [];
    return taken;
  }
}
