/** The router that serves: loads, swaps and takes back what decides; route-decider.ts decides.
 *  In: a configuration, where releases are found, a clock. Out: `choose` for a gateway, `chooseNext` after a failure,
 *  `explain`, `reload`, `rollBack`. A swap is one assignment between two requests, so no request waits or fails for it; a
 *  decision keeps the router that made it. */
import { type Clock, reasonOf, short } from "../base/index.ts";
import type { RouteQuestion } from "../collect/gateway/index.ts";
import { fieldsNeverSent, neverSentWarning, type PolicyModel, type Router } from "../policy/index.ts";
import { defaultTable, hasWorth } from "./candidates.ts";
import { checkRouterConfig, type RouterConfig } from "./config.ts";
import { type Explanation, explainDecision } from "./explain.ts";
import { type Loaded, type LoadPlace, loadServed, loadShadow, signatureOf } from "./load.ts";
import type { ReleaseHistory } from "./released-routers.ts";
import { RouteDecider, type ServedAnswer } from "./route-decider.ts";
import { embeddingOf, type Served, serve } from "./served.ts";

export interface RouterPlace extends LoadPlace {
  readonly clock: Clock;
  /** Whether calls of a gateway are all that it is asked for: a policy that reads other fields is named in the log. */
  readonly isForCalls?: boolean | undefined;
  /** One line for everything that a person should know: reloads, refusals, failures, rollbacks. */
  readonly log?: ((line: string) => void) | undefined;
}

export interface RouterStatus {
  readonly serving: "policy" | "static";
  readonly router: Served["digest"];
  readonly revision: Served["revision"];
  readonly policy: Served["revision"] | null;
  readonly why: string;
  readonly verdict: Served["digest"] | null;
  readonly previous: Served["digest"] | null;
  readonly shadow: Served["digest"] | null;
  /** Since when this router serves. */
  readonly sinceMs: number;
  readonly counts: RouterCounts;
}

interface RouterCounts {
  readonly decisions: number;
  /** Decisions where the policy failed and the table decided, or where the table named no candidate. */
  readonly fallbacks: number;
  readonly shadowed: number;
  /** Decisions where the shadow drew another candidate. */
  readonly disagreed: number;
  readonly reloads: number;
  readonly refusedReloads: number;
  readonly rollbacks: number;
}

type Reloaded = "unchanged" | "swapped" | "kept";

/** Reads everything once. A learned policy that may not serve leaves the static table and a reason in `status()`; a table
 *  that cannot be read is an error. */
export async function openRouter(config: RouterConfig, place: RouterPlace): Promise<ServedRouter> {
  const signature = await signatureOf(config, place);
  const loaded = await loadServed(config, place);
  return new ServedRouter(config, place, { loaded, signature });
}

/** A router that stands as it was built, as in a window of a training loop: nothing is looked for, nothing is swapped. */
export function serveRouter(
  router: Router,
  { family, seed, model, why, ...place }: FixedRouter & Pick<RouterPlace, "clock" | "log">,
): ServedRouter {
  const served = serve(router, { why, ...(model === undefined ? {} : { model }) });
  const config = checkRouterConfig({ family });
  return new ServedRouter(config, place, { loaded: { served, previous: undefined }, signature: "", seed });
}

interface FixedRouter {
  readonly family: string;
  /** Draws follow from it and from the call. */
  readonly seed: bigint;
  /** Of the learned policy, where there is one. */
  readonly model?: PolicyModel | undefined;
  readonly why: string;
}

export class ServedRouter {
  readonly config: RouterConfig;
  readonly #place: RouterPlace;
  readonly #decider: RouteDecider;
  #served: Served;
  #previous: Served | undefined;
  #shadow: Served | undefined;
  #signature: string;
  /** Why the newest release does not serve, as it was told last. */
  #notServed: string | undefined;
  #sinceMs: number;
  #reloading: Promise<Reloaded> | undefined;
  #timer: NodeJS.Timeout | undefined;
  readonly #takenBack: ReleaseHistory["rollbacks"][number][] = [];
  readonly #counts = { reloads: 0, refusedReloads: 0, rollbacks: 0 };

  constructor(
    config: RouterConfig,
    place: RouterPlace,
    { loaded, signature, seed }: { loaded: Loaded; signature: string; seed?: bigint },
  ) {
    this.config = config;
    this.#place = { ...place, takenBack: this.#takenBack };
    this.#decider = new RouteDecider(config, { seed, log: (line) => this.#log(line) });
    this.#served = loaded.served;
    this.#previous = loaded.previous;
    this.#signature = signature;
    this.#notServed = loaded.refused ?? loaded.passedOver;
    this.#sinceMs = place.clock.nowMs();
    this.#loadShadow();
    this.#log(`router: ${loaded.served.why}`);
    this.#warnOfFields();
    if (config.reload !== undefined) this.#watch(config.reload.everyMs);
  }

  /** The gateway's `choose`. It answers wherever a static router would: a policy that fails leaves the table to decide. */
  readonly choose = (question: RouteQuestion): ServedAnswer =>
    this.#decider.choose(question, {
      served: this.#served,
      previous: this.#previous,
      shadow: this.#shadow,
    });

  /** The next choice of the same router after candidates failed: a second step, with its probabilities over the rest. */
  chooseNext(previous: ServedAnswer, failed: readonly string[]): ServedAnswer {
    return this.#decider.chooseNext(previous, failed);
  }

  explain(answer: ServedAnswer): Explanation {
    const { decision, question, served } = answer;
    const { router, model } = served;
    const ids = question.candidates.map(({ id }) => id);
    const isList =
      this.config.table === undefined && router.table.digest === defaultTable(this.config, ids).digest;
    return explainDecision({
      ...{ decision, context: question.context, model, router, why: served.why },
      fallback: !isList ? "table" : hasWorth(this.config, ids) ? "worth" : "list",
      candidates: decision.candidates ?? question.candidates,
    });
  }

  status(): RouterStatus {
    const { digest, revision, router, why, verdict = null, model } = this.#served;
    return {
      serving: model === undefined ? "static" : "policy",
      ...{ router: digest, revision, policy: router.policy?.revision ?? null, why, verdict },
      previous: this.#previous?.digest ?? null,
      shadow: this.#shadow?.digest ?? null,
      sinceMs: this.#sinceMs,
      counts: { ...this.#decider.counts, ...this.#counts },
    };
  }

  /** What serves, and what would after a rollback. */
  get active(): { readonly served: Served; readonly previous: Served | undefined } {
    return { served: this.#served, previous: this.#previous };
  }

  /** The embedding models that a decision may read, each once: the shadow and a holdback decide too. */
  get embeddingModels(): readonly string[] {
    const all = [this.#served, this.#previous, this.#shadow];
    return [...new Set(all.flatMap((each) => embeddingOf(each?.model)?.model ?? []))];
  }

  /** Looks for a new checkpoint, table or release. A new router is built and verified aside; one that may not serve leaves
   *  the old one in place. */
  reload(): Promise<Reloaded> {
    this.#reloading ??= this.#reload().finally(() => {
      this.#reloading = undefined;
    });
    return this.#reloading;
  }

  /** Back to the router before this one. Undefined where there is none. */
  rollBack(reason: string): { from: Served; to: Served } | undefined {
    const [from, to] = [this.#served, this.#previous];
    if (to === undefined || to.digest === from.digest) return undefined;
    this.#takenBack.push({ from: { digest: from.digest }, atMs: this.#place.clock.nowMs() });
    this.#swap(to, undefined);
    this.#counts.rollbacks++;
    this.#log(`router: rolled back from ${short(from.digest)} to ${short(to.digest)}: ${reason}`);
    return { from, to };
  }

  close(): void {
    clearInterval(this.#timer);
  }

  #warnOfFields(): void {
    const { model, router } = this.#served;
    const names = this.#place.isForCalls === true ? fieldsNeverSent(model) : [];
    if (names.length > 0)
      this.#log(`warning: ${neverSentWarning(router.policy?.revision?.id ?? "the policy", names)}`);
  }

  async #reload(): Promise<Reloaded> {
    let signature: string;
    let loaded: Loaded;
    try {
      signature = await signatureOf(this.config, this.#place);
      if (signature === this.#signature) return "unchanged";
      loaded = await loadServed(this.config, this.#place);
    } catch (error) {
      return this.#keep(reasonOf(error));
    }
    // What could not be loaded is tried again when it changes, not at every look.
    this.#signature = signature;
    this.#loadShadow();
    const { served, previous, refused, passedOver } = loaded;
    const notServed = refused ?? passedOver;
    const isNews = notServed !== undefined && notServed !== this.#notServed;
    this.#notServed = notServed;
    if (refused !== undefined && this.#served.model !== undefined && !(await this.#isTakenBack()))
      return this.#keep(refused);
    if (served.digest === this.#served.digest) return isNews ? this.#keep(notServed) : "unchanged";
    this.#swap(served, (await this.#isTakenBack()) ? previous : this.#served);
    this.#counts.reloads++;
    this.#log(`router: now ${served.why}`);
    return "swapped";
  }

  #keep(why: string): Reloaded {
    this.#counts.refusedReloads++;
    this.#log(`router: kept ${short(this.#served.digest)}, because the new one may not serve: ${why}`);
    return "kept";
  }

  #swap(served: Served, previous: Served | undefined): void {
    this.#served = served;
    this.#previous = previous;
    this.#sinceMs = this.#place.clock.nowMs();
    this.#warnOfFields();
  }

  /** Another process on the same book may have taken back what serves here. */
  async #isTakenBack(): Promise<boolean> {
    const standing = await this.#place.releases?.standing();
    const { digest, verdict } = this.#served;
    const release = standing?.verdicts.find((each) => each.digest === verdict);
    const releasedAt = release?.record.atMs ?? Number.NEGATIVE_INFINITY;
    return (standing?.rollbacks ?? []).some(({ from, atMs }) => from.digest === digest && atMs >= releasedAt);
  }

  #loadShadow(): void {
    try {
      this.#shadow = loadShadow(this.config, this.#place);
    } catch (error) {
      this.#log(`router: the shadow is not used: ${reasonOf(error)}`);
    }
  }

  #watch(everyMs: number): void {
    this.#timer = setInterval(() => void this.reload(), everyMs);
    this.#timer.unref();
  }

  #log(line: string): void {
    this.#place.log?.(line);
  }
}
