/** Reads the journal of a gateway by place, read-only. Sealing uses it beside the writing thread. In: the directory
 *  of a journal, places that are on disk. Out: events and calls. Does not search. */
import type { RolloutEvent } from "../../../contract/index.ts";
import { type LogPlace, LogReader } from "../../../store/index.ts";
import type { ReadFrame } from "./decided.ts";
import { type CalledEntry, decodeCall, frameTextOf } from "./journal-call.ts";

/** Limit of cached frames. */
const MOST_FRAMES = 64;

export class JournalReader {
  readonly #log: LogReader;
  readonly #frames = new Map<string, string>();

  constructor(directory: string) {
    this.#log = new LogReader(directory);
  }

  /** An event, and the bytes of its record. */
  event(place: LogPlace): { record: RolloutEvent; bytes: Buffer } {
    const bytes = this.#log.read(place);
    // The gateway wrote the record in this run or checked it at its start, and the log verifies its bytes.
    const record = JSON.parse(bytes.toString()) as RolloutEvent;
    const { event } = record;
    if (event.kind === "opened") event.seed = BigInt(event.seed);
    return { record, bytes };
  }

  called(place: LogPlace): CalledEntry {
    return decodeCall(this.#log.read(place), this.framesOf(place.segment));
  }

  /** Reads frames that entries of this segment refer to. */
  framesOf(segment: number): ReadFrame {
    return ({ decision, ...place }) => {
      const key = `${segment}.${place.offset}.${decision}`;
      const known = this.#frames.get(key);
      if (known !== undefined) return known;
      const text = frameTextOf(this.#log.read({ segment, ...place }), decision);
      if (this.#frames.size >= MOST_FRAMES) this.#frames.clear();
      this.#frames.set(key, text);
      return text;
    };
  }

  close(): void {
    this.#log.close();
  }
}
