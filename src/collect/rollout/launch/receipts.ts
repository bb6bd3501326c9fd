/** The receipts of a launch's results: those given in this process, those that other workers were given, and, in place
 *  of one that a crash took, a new one. In: what the queue says is done. Out: a receipt for each of it. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Digest } from "../../../base/index.ts";
import type { Receipt, Sealed } from "../../../contract/index.ts";
import { isTaken } from "../../receipt.ts";
import type { GivenReceipt, SealedIndex, WorkerServer } from "../worker/index.ts";

interface DoneItem {
  readonly item: string;
  readonly content: Digest;
  /** Done before this launch began: its receipt was given, or never will be. */
  readonly earlier: boolean;
  /** Done by a worker of this process, which will note the receipt. */
  readonly own: boolean;
}

/** The queue hears before the receipt is written; so long at most, unless its writer died. */
const PATIENCE_MS = 2_000;
const LOOK_MS = 25;
const NOTE_MS = 5;

export class Receipts {
  readonly #own = new Map<Digest, GivenReceipt>();
  readonly #sealed: SealedIndex;
  readonly #server: Pick<WorkerServer, "reissue">;

  constructor(sealed: SealedIndex, server: Pick<WorkerServer, "reissue">) {
    this.#sealed = sealed;
    this.#server = server;
  }

  /** A receipt that a worker of this process was given. */
  note({ digest, record: { subject, outcome } }: Sealed<Receipt>): void {
    if (isTaken(outcome)) this.#own.set(subject, { digest, outcome });
  }

  async of(items: readonly DoneItem[]): Promise<Map<Digest, GivenReceipt>> {
    const given = new Map<Digest, GivenReceipt>();
    let missing = this.#collect(items, given, this.#own);
    // A worker of this process is about to note its own; looking them up would read everything that was written since.
    for (let waitedMs = 0; waitedMs < PATIENCE_MS && missing.some(isComing); waitedMs += NOTE_MS) {
      await sleep(NOTE_MS);
      missing = this.#collect(missing, given, this.#own);
    }
    for (let waitedMs = 0; missing.length > 0; waitedMs += LOOK_MS) {
      const found = await this.#sealed.receipts(missing.map(({ content }) => content));
      missing = this.#collect(missing, given, found);
      missing = this.#collect(missing, given, this.#own);
      const late = missing.filter(({ earlier }) => earlier || waitedMs >= PATIENCE_MS);
      for (const { item, content } of late) {
        const { digest, record } = await this.#server.reissue(item);
        given.set(content, { digest, outcome: record.outcome });
      }
      missing = missing.filter((each) => !late.includes(each));
      if (missing.length > 0) await sleep(LOOK_MS);
    }
    return given;
  }

  /** Moves what `from` knows into `given`; returns the rest. */
  #collect(
    items: readonly DoneItem[],
    given: Map<Digest, GivenReceipt>,
    from: Map<Digest, GivenReceipt>,
  ): DoneItem[] {
    return items.filter(({ content }) => {
      const receipt = from.get(content);
      if (receipt !== undefined) given.set(content, receipt);
      return receipt === undefined;
    });
  }
}

function isComing({ own, earlier }: DoneItem): boolean {
  return own && !earlier;
}
