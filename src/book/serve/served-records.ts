/** Seals a record of each router that a gateway serves, so that its choices can be explained: a step names its router
 *  by digest only.
 *  In: routers. Out: a record for each, once. A record that cannot be written is reported, and costs no call. */
import { type Digest, reasonOf } from "../../base/index.ts";
import type { Signer } from "../../contract/index.ts";
import type { RouterConfig, Served } from "../../serve/index.ts";
import type { OpenBook } from "../open/index.ts";
import { sealNamedRouter } from "./named-router.ts";

export class ServedRecords {
  readonly #book: OpenBook;
  readonly #config: RouterConfig;
  readonly #signer: Signer;
  readonly #log: (line: string) => void;
  readonly #known = new Set<Digest>();
  #done: Promise<void> = Promise.resolve();

  constructor(
    book: OpenBook,
    { config, signer, log }: { config: RouterConfig; signer: Signer; log: (line: string) => void },
  ) {
    this.#book = book;
    this.#config = config;
    this.#signer = signer;
    this.#log = log;
  }

  add(routers: readonly Served[]): void {
    for (const served of routers) {
      if (this.#known.has(served.digest)) continue;
      this.#known.add(served.digest);
      this.#done = this.#done.then(() => this.#seal(served));
    }
  }

  settle(): Promise<void> {
    return this.#done;
  }

  async #seal({ router, digest }: Served): Promise<void> {
    const { family, seed } = this.#config;
    try {
      await sealNamedRouter(this.#book, router, { family, seed: BigInt(seed), signer: this.#signer });
    } catch (error) {
      this.#known.delete(digest);
      this.#log(`router: the record of a router could not be written: ${reasonOf(error)}`);
    }
  }
}
