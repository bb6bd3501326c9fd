/** The routers that rollouts name. They are read from the book once and kept while an open rollout names them. In:
 *  digests of their records. Out: their choosers, or a refusal. Reads happen at an opening, at a start, and in the
 *  background of a call whose router is missing. A call never waits for the book. */
import { type Digest, isRollbookError, reasonOf } from "../../../base/index.ts";
import { isRefusal } from "../../../contract/index.ts";
import { HttpRefusal } from "../wire/index.ts";
import type { Choose } from "./choose.ts";

/** Loads a router by the digest of its record. Rejects if the book does not hold it. */
export type LoadRouter = (router: Digest) => Promise<Choose>;

export interface NamedRoutersOptions {
  /** Undefined if there is no book to read routers from. */
  readonly load?: LoadRouter | undefined;
  /** The routers that open rollouts name. They are not evicted. */
  readonly inUse?: () => ReadonlySet<Digest>;
  readonly log?: (line: string) => void;
}

/** A window of a loop has one router, so open rollouts name few routers. */
const MAX_NAMED = 256;

/** Permanent faults of the record or its policy, besides those of the contracts. A retry gives the same fault. */
const LASTING: ReadonlySet<string> = new Set([
  "not-trusted",
  "bad-seed",
  "bad-config",
  "bad-table",
  "bad-router",
  "bad-checkpoint",
  "bad-safetensors",
  ...["bad-feature-spec", "other-feature-spec"],
]);

export class NamedRouters {
  readonly #load: LoadRouter | undefined;
  readonly #inUse: () => ReadonlySet<Digest>;
  readonly #log: (line: string) => void;
  /** A refusal marks a router with a permanent fault. Only an opening retries such a router. */
  readonly #known = new Map<Digest, Choose | Promise<Choose> | HttpRefusal>();

  constructor({ load, inUse = () => new Set(), log = () => {} }: NamedRoutersOptions) {
    this.#load = load;
    this.#inUse = inUse;
    this.#log = log;
  }

  async ready(router: Digest): Promise<void> {
    const known = this.#known.get(router);
    const isNew = known === undefined || known instanceof HttpRefusal;
    if (isNew && this.#load === undefined)
      throw new HttpRefusal(422, "no-named-routers", "this gateway has no book to read a named router from.");
    const choose = isNew ? this.#load!(router) : known;
    this.#keep(router, choose);
    try {
      const found = await choose;
      if (this.#known.has(router)) this.#known.set(router, found);
    } catch (error) {
      this.#known.delete(router);
      const refusal = refusalOf(router, error);
      if (refusal?.status === 422) this.#keep(router, refusal);
      throw refusal ?? error;
    } finally {
      if (isNew) this.#evict();
    }
  }

  /** Throws if the router is not ready. It then starts a read in the background, and the client retries. */
  chooserOf(router: Digest): Choose {
    const known = this.#known.get(router);
    if (typeof known === "function") return known;
    if (known instanceof HttpRefusal) throw known;
    if (known === undefined)
      this.ready(router).catch((error) => this.#log(`the router ${router}: ${reasonOf(error)}`));
    throw new HttpRefusal(
      503,
      "router-not-ready",
      `the gateway is reading the router ${router} that the rollout names. Try again.`,
      { retry: true },
    );
  }

  /** Moves the router to the end, so the first entry is the least recently used. */
  #keep(router: Digest, known: Choose | Promise<Choose> | HttpRefusal): void {
    this.#known.delete(router);
    this.#known.set(router, known);
  }

  #evict(): void {
    if (this.#known.size <= MAX_NAMED) return;
    const inUse = this.#inUse();
    for (const [router, known] of this.#known) {
      if (this.#known.size <= MAX_NAMED) return;
      if (!inUse.has(router) && !(known instanceof Promise)) this.#known.delete(router);
    }
  }
}

/** Undefined if neither the router nor the book is at fault. */
function refusalOf(router: Digest, error: unknown): HttpRefusal | undefined {
  if (!isRollbookError(error)) return undefined;
  const said = `the router ${router} cannot be served: ${error.message}`;
  // The book may hold the record at the next attempt, or the book of another gateway may hold it already.
  const isLasting = LASTING.has(error.code) || (isRefusal(error) && error.code !== "missing-blob");
  return isLasting
    ? new HttpRefusal(422, error.code, said, { cause: error })
    : new HttpRefusal(503, error.code, said, { retry: true, cause: error });
}
