/** The journal of the gateway: what is on disk before a reply is released. In: events of open rollouts, and calls as
 *  the bytes that crossed the wire. Out: the same again after a crash; the sealing reads it by journal-reader.ts. It is not the book:
 *  an entry goes once its rollout is sealed. Reads and writes; understands neither requests nor replies. */
import { canonicalize, type Digest, type Id } from "../../../base/index.ts";
import { openRecord, RolloutEvent } from "../../../contract/index.ts";
import { AppendLog, type LogPlace, type Waiter } from "../../../store/index.ts";
import {
  type CalledFacts,
  type CalledParts,
  type CallTexts,
  decodeFacts,
  encodeCall,
  isCall,
  type NewCall,
} from "./journal-call.ts";
import type { EventOf } from "./journal-event.ts";

export type { LogPlace, Waiter };

/** What an earlier process left, entry by entry. */
interface JournalVisitor {
  event(record: RolloutEvent, place: LogPlace): void;
  called(facts: CalledFacts, place: LogPlace): void;
}

/** How long an entry without a waiting client may wait for others: this saves writes. */
export const SOON_MS = 5;

export class Journal {
  readonly #log: AppendLog;

  private constructor(log: AppendLog) {
    this.#log = log;
  }

  static open(directory: string, visitor: JournalVisitor): Journal {
    const log = AppendLog.open(directory, ({ place, payload }) => {
      if (isCall(payload)) visitor.called(decodeFacts(payload), place);
      else visitor.event(openRecord(RolloutEvent, payload), place);
    });
    return new Journal(log);
  }

  /** Whether a write has failed: then nothing more is recorded, and so nothing delivered. */
  get hasFailed(): boolean {
    return this.#log.hasFailed;
  }

  /** Bytes that are not on disk yet. */
  get pendingBytes(): number {
    return this.#log.pendingBytes;
  }

  /** Adds an event; durable once `flush` resolves. */
  event(rollout: Id, event: RolloutEvent["event"]): LogPlace {
    return this.#log.append([eventBytes(rollout, event)]);
  }

  /** Adds an event that is written out already. */
  written(text: string): LogPlace {
    return this.#log.append([Buffer.from(text)]);
  }

  /** Adds a call; durable once `flush` resolves. */
  called(facts: NewCall, about: CallTexts, parts: CalledParts): LogPlace {
    return this.#log.append(encodeCall(facts, about, parts));
  }

  /** Resolves when everything added before is durable; the write begins within `withinMs`. */
  flush(withinMs?: number): Promise<void> {
    return this.#log.flush(withinMs);
  }

  /** The same for a waiter. */
  whenDurable(waiter: Waiter, withinMs?: number): void {
    this.#log.whenDurable(waiter, withinMs);
  }

  release(places: Iterable<LogPlace>): void {
    for (const place of places) this.#log.release(place);
  }

  /** Lets go of what recovery has not taken up. */
  tidy(): void {
    this.#log.tidy();
  }

  /** Resolves when everything is durable, and everyone who waits for it has heard. */
  close(): Promise<void> {
    return this.#log.close();
  }
}

export function eventBytes(rollout: Id, event: RolloutEvent["event"]): Buffer {
  return Buffer.from(eventText(rollout, event));
}

export function eventText(rollout: Id, event: RolloutEvent["event"]): string {
  const wire = event.kind === "opened" ? { ...event, seed: event.seed.toString() } : event;
  return canonicalize({ schema: RolloutEvent.kind, rollout, event: wire });
}

/** As it stands in the book once the rollout is sealed. */
export function calledEvent(
  facts: CalledFacts,
  { call, parent }: { call: Digest; parent: number | undefined },
): EventOf<"called"> {
  const { index, steps, stepFamily, outcome, startedAtMs, firstByteMs, durationMs, deliveries } = facts;
  return {
    kind: "called",
    index,
    call,
    steps: [...steps],
    ...(stepFamily === undefined ? {} : { stepFamily }),
    ...(parent === undefined ? {} : { parent }),
    outcome,
    startedAtMs,
    ...(firstByteMs === undefined ? {} : { firstByteMs }),
    durationMs,
    deliveries: [...deliveries],
  };
}
