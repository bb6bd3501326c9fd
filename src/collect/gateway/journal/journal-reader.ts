/** Reads the journal of a gateway by place, read-only. Sealing uses it beside the writing thread. In: the directory
 *  of a journal, places that are on disk. Out: events and calls. Does not search. */
import type { RolloutEvent } from "../../../contract/index.ts";
import { LogReader } from "../../../store/index.ts";
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
    // The gateway wrote the record in this run or checked it at its start, and the log verifies its bytes.
    const record = JSON.parse(bytes.toString()) as RolloutEvent;
    const { event } = record;
    if (event.kind === "opened") event.seed = BigInt(event.seed);
    return { record, bytes };
  }

  called(place: LogPlace): CalledEntry {
    return decodeCall(this.#log.read(place));
  }

  close(): void {
    this.#log.close();
  }
}
