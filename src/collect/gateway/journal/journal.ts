/** The journal of the gateway: it is durable before a reply is released. In: events of open rollouts, and calls as
 *  the bytes that crossed the wire. Out: the same entries after a crash; sealing reads them by journal-reader.ts.
 *  The journal is not the book: an entry is deleted once its rollout is sealed. Reads and writes; does not interpret
 *  requests or replies. */
import { canonicalize, type Digest, type Id } from "../../../base/index.ts";
import { openRecord, RolloutEvent } from "../../../contract/index.ts";
import { AppendLog, type LogPlace, type Waiter } from "../../../store/index.ts";
import { FrameReferences } from "./frame-references.ts";
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
import { JournalReader } from "./journal-reader.ts";

export type { LogPlace, Waiter };

/** Receives the entries of an earlier process, one by one. */
interface JournalVisitor {
  event(record: RolloutEvent, place: LogPlace): void;
  called(facts: CalledFacts, place: LogPlace): void;
}

/** Milliseconds that an entry without a waiting client may wait for other entries. Waiting saves writes. */
export const SOON_MS = 5;

export class Journal {
  readonly #log: AppendLog;
  readonly #frames = new FrameReferences();

  private constructor(log: AppendLog) {
    this.#log = log;
  }

  static open(directory: string, visitor: JournalVisitor): Journal {
    const reader = new JournalReader(directory);
    try {
      const log = AppendLog.open(directory, ({ place, payload }) => {
        if (isCall(payload)) visitor.called(decodeFacts(payload, reader.framesOf(place.segment)), place);
        else visitor.event(openRecord(RolloutEvent, payload), place);
      });
      return new Journal(log);
    } finally {
      reader.close();
    }
  }

  /** True after a failed write. The gateway then records nothing more, and so delivers nothing. */
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

  /** Adds an event that is already serialized. */
  written(text: string): LogPlace {
    return this.#log.append([Buffer.from(text)]);
  }

  /** Adds a call; durable once `flush` resolves. */
  called(facts: NewCall, about: CallTexts, parts: CalledParts): LogPlace {
    const frames = this.#frames.begin(this.#log.nextSegment);
    const place = this.#log.append(encodeCall(facts, about, parts, frames));
    frames.end(place);
    return place;
  }

  /** Resolves when all entries added before are durable. The write begins within `withinMs`. */
  flush(withinMs?: number): Promise<void> {
    return this.#log.flush(withinMs);
  }

  /** Notifies the waiter when all entries added before are durable. The write begins within `withinMs`. */
  whenDurable(waiter: Waiter, withinMs?: number): void {
    this.#log.whenDurable(waiter, withinMs);
  }

  release(places: Iterable<LogPlace>): void {
    for (const place of places) this.#log.release(place);
  }

  /** Removes segments without entries that recovery still needs. */
  tidy(): void {
    this.#log.tidy();
  }

  /** Resolves when all entries are durable and all waiters have been notified. */
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

/** The event as the book stores it once the rollout is sealed. */
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
