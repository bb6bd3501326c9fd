/** Opens a router on a book: verdicts of the book release policies, its outcomes show harm, rollbacks are sealed in
 *  it.
 *  In: an open book, a configuration. Out: the router, and its rollback watch. Closing stops the watch; the caller
 *  closes the book. A look at outcomes reads the admitted rollouts, so the pause after a look is at least ten times
 *  its duration. */
import { readFileSync } from "node:fs";
import { reasonOf } from "../../base/index.ts";
import type { Rollback, Sealed, Signer } from "../../contract/index.ts";
import type { DecisionCandidate } from "../../policy/index.ts";
import {
  checkRouterConfig,
  type HarmEvidence,
  HarmWatch,
  openRouter,
  parseRouterConfig,
  type RouterConfigInput,
  type Served,
  type ServedRouter,
} from "../../serve/index.ts";
import type { OpenBook } from "../open/index.ts";
import { OutcomeReader } from "./outcomes.ts";
import { policyReleasesOf, type Trusts, trustsOf } from "./policy-releases.ts";
import { type RolledBack, sealRollback } from "./seal-rollback.ts";
import { ServedRecords } from "./served-records.ts";

interface ServeRequest {
  /** Environment variables that override the configuration (default: none). */
  readonly env?: Readonly<Record<string, string | undefined>> | undefined;
  /** Candidates as they will be asked, for checks at start-up (default: those of the configuration). */
  readonly candidates?: readonly DecisionCandidate[] | undefined;
  /** Keys whose signatures count with `trust: signed` (default: the user's own key and the keys trusted beside it). */
  readonly trusts?: Trusts | undefined;
  /** True if the router only decides gateway calls. The log then names a policy that reads other fields. */
  readonly isForCalls?: boolean | undefined;
  /** Signs a record of each router that serves, which `route explain` reads (default: no records). */
  readonly signer?: Signer | undefined;
  readonly log?: ((line: string) => void) | undefined;
}

export interface BookRouter {
  readonly router: ServedRouter;
  /** Looks at the outcomes once, and rolls back if they show harm. Undefined if there is nothing to compare. */
  look(): Promise<HarmLook | undefined>;
  close(): Promise<void>;
}

interface HarmLook {
  readonly evidence: HarmEvidence;
  /** Rollback that this look sealed. */
  readonly rollback?: Sealed<Rollback>;
}

export async function openServedRouter(
  book: OpenBook,
  /** Path of a YAML file with a router section, or the content of that section. */
  config: string | RouterConfigInput,
  { candidates, env = {}, trusts, isForCalls, signer, log = () => {} }: ServeRequest = {},
): Promise<BookRouter> {
  const checked =
    typeof config === "string"
      ? parseRouterConfig(readFileSync(config, "utf8"), config, env)
      : checkRouterConfig(config, { env });
  const releases = policyReleasesOf(book, { trusts: trustsOf(checked, trusts), log });
  const records =
    signer === undefined ? undefined : new ServedRecords(book, { config: checked, signer, log });
  const onServe = (routers: readonly Served[]) => records?.add(routers);
  const router = await openRouter(checked, {
    ...{ releases, clock: book.clock, candidates, isForCalls, onServe, log },
  });
  await records?.settle();
  const watch = new RollbackWatch(book, router, log);
  watch.start();
  return {
    router,
    look: () => watch.look(),
    async close() {
      await router.close();
      await watch.stop();
      await records?.settle();
    },
  };
}

/** Ratio of pause to look: looks take at most a tenth of the time. */
const REST = 10;

class RollbackWatch {
  readonly #book: OpenBook;
  readonly #router: ServedRouter;
  readonly #log: (line: string) => void;
  readonly #outcomes: OutcomeReader;
  #watched: { served: Served; previous: Served; watch: HarmWatch } | undefined;
  /** Rollback that was done but not sealed yet: the disk may have been full. */
  #unsealed: RolledBack | undefined;
  #looking: Promise<HarmLook | undefined> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #stopped = false;

  constructor(book: OpenBook, router: ServedRouter, log: (line: string) => void) {
    this.#book = book;
    this.#router = router;
    this.#log = log;
    this.#outcomes = new OutcomeReader(book);
  }

  start(): void {
    const rule = this.#router.config.rollback;
    if (rule !== undefined) this.#again(rule.everyMs);
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#timer);
    await this.#looking?.catch(() => {});
  }

  look(): Promise<HarmLook | undefined> {
    this.#looking ??= this.#look().finally(() => {
      this.#looking = undefined;
    });
    return this.#looking;
  }

  #again(waitMs: number): void {
    this.#timer = setTimeout(() => void this.#lookAndRest(), waitMs);
    this.#timer.unref();
  }

  async #lookAndRest(): Promise<void> {
    const startMs = performance.now();
    try {
      await this.look();
    } catch (error) {
      this.#log(`router: the outcomes could not be read: ${reasonOf(error)}`);
    }
    const { everyMs } = this.#router.config.rollback!;
    if (!this.#stopped) this.#again(Math.max(everyMs, REST * (performance.now() - startMs)));
  }

  async #look(): Promise<HarmLook | undefined> {
    const { family, rollback: rule } = this.#router.config;
    if (this.#unsealed !== undefined) return this.#seal(this.#unsealed);
    const watched = this.#follow();
    if (rule === undefined || watched === undefined) return undefined;
    const { served, previous, watch } = watched;
    const { of, manifest } = await this.#outcomes.read({ family, feedback: rule.feedback });
    const before = this.#book.clock.nowMs() - rule.settleMs;
    const settled = (digest: Served["digest"]) => (of.get(digest) ?? []).filter(({ atMs }) => atMs <= before);
    const fresh = settled(served.digest);
    const firstMs = fresh.reduce((least, { atMs }) => Math.min(least, atMs), Number.POSITIVE_INFINITY);
    const isRecord = rule.holdback === 0;
    watch.offer({
      fresh,
      before: settled(previous.digest).filter(({ atMs }) => atMs < firstMs === isRecord),
    });
    const evidence = watch.evidence();
    // A reload may have happened while the outcomes were read.
    if (!evidence.harm || this.#router.active.served !== served) return { evidence };
    const swapped = this.#router.rollBack(inWords(evidence));
    if (swapped === undefined) return { evidence };
    const { feedback } = rule;
    const atMs = this.#book.clock.nowMs();
    return this.#seal({ ...swapped, family, evidence, feedback, manifest, atMs });
  }

  async #seal(done: RolledBack): Promise<HarmLook> {
    this.#unsealed = done;
    const rollback = await sealRollback(this.#book, done);
    this.#unsealed = undefined;
    return { evidence: done.evidence, rollback };
  }

  /** Pair to compare: the serving policy and the router before it. A new pair starts a new watch. */
  #follow() {
    const { served, previous } = this.#router.active;
    const rule = this.#router.config.rollback;
    if (rule === undefined || served.model === undefined || previous === undefined) return undefined;
    if (this.#watched?.served !== served || this.#watched.previous !== previous) {
      const { alpha, margin, range, holdback } = rule;
      const comparedWith = holdback === 0 ? "record" : "holdback";
      this.#watched = { served, previous, watch: new HarmWatch({ alpha, margin, range, comparedWith }) };
    }
    return this.#watched;
  }
}

function inWords({ pairs, fresh, before, upper, margin, alpha }: HarmEvidence): string {
  return `over ${pairs} pairs of outcomes the mean is ${fresh.toPrecision(3)}, before it was ${before.toPrecision(3)}; the difference is below ${upper.toPrecision(3)}, and ${-margin} is the limit (error level ${alpha})`;
}
