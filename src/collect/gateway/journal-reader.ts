/** Reads the journal of a gateway back, by place and to read only: for the sealing, which works beside the thread that
 *  writes. In: the directory of a journal, places that are on disk. Out: events and calls. Looks for nothing. */
import { decodeWire, RolloutEvent } from "../../contract/index.ts";
import { LogReader } from "../../store/log-reader.ts";
import type { LogPlace } from "./journal.ts";
import { type CalledEntry, decodeCall } from "./journal-call.ts";

export class JournalReader {
  readonly #log: LogReader;

  constructor(directory: string) {
    this.#log = new LogReader(directory);
  }

  /** An event, and the bytes of its record. */
  event(place: LogPlace): { record: RolloutEvent; bytes: Buffer } {
    const bytes = this.#log.read(place);
    // Canonical, because the journal made it so, and checked by the log.
    return { record: decodeWire(RolloutEvent, JSON.parse(bytes.toString()), "the journal"), bytes };
  }

  called(place: LogPlace): CalledEntry {
    return decodeCall(this.#log.read(place));
  }

  close(): void {
    this.#log.close();
  }
}
