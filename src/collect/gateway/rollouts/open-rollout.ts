/** A rollout while it is open: what it is for, what it may still do, and where the journal has its calls.
 *  Holds numbers and places, not messages. In: calls as they are journaled. Does no I/O. */
import type { Id } from "../../../base/index.ts";
import { type Call, type Delivery, type EndingLimit, spentBy } from "../../../contract/index.ts";
import type { LogPlace } from "../../../store/index.ts";
import type { FeedbackEvent, OpenedEvent } from "../journal/index.ts";

export class OpenRollout {
  readonly id: Id;
  /** Its id as it stands in a header, and in the journal. */
  readonly headerId: string;
  readonly idBytes: Buffer;
  readonly opening: OpenedEvent;
  /** Where the journal has its calls, by number. */
  readonly calls = new Map<number, LogPlace>();
  /** … and everything else about it. */
  readonly events: LogPlace[] = [];
  readonly feedback: FeedbackEvent[] = [];
  /** Marks that the journal has not heard of yet. */
  pendingDeliveries: { call: number; delivery: Delivery }[] = [];
  /** What its calls take in the journal. */
  bytes = 0;
  promptTokens = 0;
  completionTokens = 0;
  costUsd = 0;
  /** Calls whose cost is not known: `costUsd` leaves them out. */
  unpricedCalls = 0;
  /** What calls without usage are taken to have cost: for the budget only, recorded nowhere. */
  estimatedUsd = 0;
  /** What calls in progress may cost, by their numbers. */
  readonly #reserved = new Map<number, number>();
  /** Calls of an earlier run that say nothing of their cost. */
  readonly unpriced: LogPlace[] = [];
  /** Calls that were recorded, and that the journal does not have any more. */
  lostCalls: readonly number[] = [];
  /** Numbers given out: one per call, recorded or in progress. */
  started = 0;
  readonly #inProgress = new Set<number>();
  /** Called when no call is in progress any more. */
  readonly whenQuiet: (() => void)[] = [];
  lastUsedMs: number;
  /** What cut it short, if a cap did. */
  capped: EndingLimit | undefined;
  /** Status and reason of the last call, if the gateway refused it. Not recorded: an agent may call on. */
  lastRefusal: string | undefined;

  constructor(id: Id, opening: OpenedEvent) {
    this.id = id;
    this.idBytes = Buffer.from(id);
    this.headerId = encodeURIComponent(id);
    this.opening = opening;
    this.lastUsedMs = opening.atMs;
  }

  get turns(): number {
    return this.started;
  }

  /** How many calls are in progress. */
  get active(): number {
    return this.#inProgress.size;
  }

  /** The number of a call that begins. */
  begin(): number {
    this.#inProgress.add(this.started);
    return this.started++;
  }

  end(call: number): void {
    this.#inProgress.delete(call);
  }

  /** Whether there is such a call: recorded, or about to be. */
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

  /** For the call that begins next, until it is added. */
  reserve(usd: number): void {
    this.#reserved.set(this.started, usd);
  }

  /** The call that was begun last is none. */
  takeBack(): void {
    this.#reserved.delete(--this.started);
  }

  /** No call is in progress: what was reserved for one that was never recorded is free again. */
  freeReserved(): void {
    if (this.#reserved.size > 0) this.#reserved.clear();
  }

  /** Notes where a call is, and what it used, as far as the upstream says it. */
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

  /** A call that has an outcome keeps its number, also if a crash cut it short: the outcome is of no other. */
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
