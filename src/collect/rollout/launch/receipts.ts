/** The receipts of a launch's results: those of this process, those of other workers, and new receipts in place of
 *  receipts lost in a crash. In: items that are done in the queue. Out: a receipt for each item. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Digest } from "../../../base/index.ts";
import type { Receipt, Sealed } from "../../../contract/index.ts";
import { isTaken } from "../../receipt.ts";
import type { GivenReceipt, SealedIndex, WorkerServer } from "../worker/index.ts";

interface DoneItem {
  readonly item: string;
  readonly content: Digest;
  /** Done before this launch began: its receipt already exists, or was lost. */
  readonly earlier: boolean;
  /** Done by a worker of this process, which will note the receipt. */
  readonly own: boolean;
}

/** Longest wait for a receipt, which is written after the queue's mark. After this time its writer has died. */
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

  /** Notes a receipt that a worker of this process got. */
  note({ digest, record: { subject, outcome } }: Sealed<Receipt>): void {
    if (isTaken(outcome)) this.#own.set(subject, { digest, outcome });
  }

  async of(items: readonly DoneItem[]): Promise<Map<Digest, GivenReceipt>> {
    const given = new Map<Digest, GivenReceipt>();
    let missing = this.#collect(items, given, this.#own);
    // A worker of this process is about to note its receipt. A lookup instead would read everything written since.
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

  /** Moves the receipts found in `from` into `given`. Returns the items without a receipt. */
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
