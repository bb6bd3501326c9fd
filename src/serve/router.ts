/** Runs the serving router: loads, swaps and rolls back the router that decides; route-decider.ts decides.
 *  In: a configuration, the source of releases, a clock. Out: `choose` for a gateway, `chooseNext` after a failure,
 *  `explain`, `reload`, `rollBack`. A swap is one assignment between two requests, so no request waits or fails because
 *  of it. A decision keeps the router that made it. */
import { type Clock, reasonOf, short } from "../base/index.ts";
import type { RouteQuestion } from "../collect/gateway/index.ts";
import { fieldsNeverSent, neverSentWarning, type PolicyModel, type Router } from "../policy/index.ts";
import { declaredCandidates, defaultTable, hasWorth } from "./candidates.ts";
import { checkRouterConfig, type RouterConfig } from "./config.ts";
import { type Explanation, explainDecision } from "./explain.ts";
import { type Loaded, type LoadPlace, loadServed, loadShadow, signatureOf } from "./load.ts";
import type { ReleaseHistory } from "./released-routers.ts";
import { RouteDecider, type ServedAnswer } from "./route-decider.ts";
import { embeddingOf, type Served, serve } from "./served.ts";

export interface RouterPlace extends LoadPlace {
  readonly clock: Clock;
  /** True if the router only decides gateway calls. The log then names a policy that reads other fields. */
  readonly isForCalls?: boolean | undefined;
  /** Called with each router that begins to serve, and the one before it. */
  readonly onServe?: ((routers: readonly Served[]) => void) | undefined;
  /** Called with one line for each event that an operator should know: reloads, refusals, failures, rollbacks. */
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
  /** Time since which this router serves. */
  readonly sinceMs: number;
  readonly counts: RouterCounts;
}

interface RouterCounts {
  readonly decisions: number;
  /** Decisions in which the policy failed and the table decided, or in which the table named no candidate. */
  readonly fallbacks: number;
  readonly shadowed: number;
  /** Decisions in which the shadow drew another candidate. */
  readonly disagreed: number;
  readonly reloads: number;
  readonly refusedReloads: number;
  readonly rollbacks: number;
}

type Reloaded = "unchanged" | "swapped" | "kept";

/** Reads everything once. If the learned policy may not serve, the static table serves and `status()` has the reason. A
 *  table that cannot be read is an error. */
export async function openRouter(config: RouterConfig, place: RouterPlace): Promise<ServedRouter> {
  const signature = await signatureOf(config, place);
  const loaded = await loadServed(config, place);
  return new ServedRouter(config, place, { loaded, signature });
}

/** Serves a router exactly as built, as in a window of a training loop: no reload, no swap. */
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
  /** Draws depend on this seed and on the call. */
  readonly seed: bigint;
  /** Model of the learned policy, if there is one. */
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
  /** Last reported reason why the newest release does not serve. */
  #notServed: string | undefined;
  /** Last reported reason why a look failed. Undefined after a look that succeeded. */
  #failed: string | undefined;
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
    this.#notServed = notServedBy(loaded);
    this.#sinceMs = place.clock.nowMs();
    this.#loadShadow();
    this.#log(`${warningOf(loaded)}router: ${loaded.served.why}`);
    this.#warnOfFields();
    this.#tellServing();
    if (config.reload !== undefined) this.#watch(config.reload.everyMs);
  }

  /** Makes a choice for the gateway. Answers whenever a static router would: if the policy fails, the table decides. */
  readonly choose = (question: RouteQuestion): ServedAnswer =>
    this.#decider.choose(question, {
      served: this.#served,
      previous: this.#previous,
      shadow: this.#shadow,
    });

  /** Makes the next choice of the same router after candidates failed: a second step, with its probabilities over the
   *  others. */
  chooseNext(previous: ServedAnswer, failed: readonly string[]): ServedAnswer {
    return this.#decider.chooseNext(previous, failed);
  }

  explain(answer: ServedAnswer): Explanation {
    const { decision, question, served } = answer;
    const { router, model } = served;
    const ids = question.candidates.map(({ id }) => id);
    // A table of the whole gateway lists the candidates of all routes.
    const lists = [ids, (this.#place.candidates ?? declaredCandidates(this.config)).map(({ id }) => id)];
    const isList =
      this.config.table === undefined &&
      lists.some((list) => router.table.digest === defaultTable(this.config, list).digest);
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

  /** Serving router, and the router that serves after a rollback. */
  get active(): { readonly served: Served; readonly previous: Served | undefined } {
    return { served: this.#served, previous: this.#previous };
  }

  /** Embedding models that a decision may read, each once. The shadow and a holdback router decide too. */
  get embeddingModels(): readonly string[] {
    const all = [this.#served, this.#previous, this.#shadow];
    return [...new Set(all.flatMap((each) => embeddingOf(each?.model)?.model ?? []))];
  }

  /** Looks for a new checkpoint, table or release. A new router is built and verified separately. If it may not serve,
   *  the old one stays. */
  reload(): Promise<Reloaded> {
    this.#reloading ??= this.#reload().finally(() => {
      this.#reloading = undefined;
    });
    return this.#reloading;
  }

  /** Rolls back to the previous router. Undefined if there is none. */
  rollBack(reason: string): { from: Served; to: Served } | undefined {
    const [from, to] = [this.#served, this.#previous];
    if (to === undefined || to.digest === from.digest) return undefined;
    this.#takenBack.push({ from: { digest: from.digest }, atMs: this.#place.clock.nowMs() });
    this.#swap(to, undefined);
    this.#counts.rollbacks++;
    this.#log(`router: rolled back from ${short(from.digest)} to ${short(to.digest)}: ${reason}`);
    return { from, to };
  }

  /** Ends the watch. Resolves when no reload reads the book: the caller may then close it. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#reloading;
  }

  #warnOfFields(): void {
    const { model, router } = this.#served;
    const names = this.#place.isForCalls === true ? fieldsNeverSent(model) : [];
    if (names.length > 0)
      this.#log(`warning: ${neverSentWarning(router.policy?.revision?.id ?? "the policy", names)}`);
  }

  async #reload(): Promise<Reloaded> {
    let signature: string;
    let loaded: Loaded | undefined;
    let isTakenBack = false;
    try {
      signature = await signatureOf(this.config, this.#place);
      if (signature !== this.#signature) {
        loaded = await loadServed(this.config, this.#place);
        isTakenBack = await this.#isTakenBack();
      }
    } catch (error) {
      return this.#fail(reasonOf(error));
    }
    this.#failed = undefined;
    if (loaded === undefined) return "unchanged";
    // A policy that was refused is tried again when a file or release changes, not at every look.
    this.#signature = signature;
    this.#loadShadow();
    const { served, previous, refusal } = loaded;
    const notServed = notServedBy(loaded);
    const isNews = notServed !== undefined && notServed !== this.#notServed;
    this.#notServed = notServed;
    if (refusal !== undefined && this.#served.model !== undefined && !isTakenBack)
      return this.#keep(refusal.why);
    if (served.digest === this.#served.digest) return isNews ? this.#keep(notServed) : "unchanged";
    this.#swap(served, isTakenBack ? previous : this.#served);
    this.#counts.reloads++;
    this.#log(`${warningOf(loaded)}router: now ${served.why}`);
    return "swapped";
  }

  /** The next look tries again, because the cause may be outside the stamped files. A repeated reason is reported
   *  once. */
  #fail(why: string): Reloaded {
    if (why === this.#failed) return "unchanged";
    this.#failed = why;
    return this.#keep(why);
  }

  #keep(why: string): Reloaded {
    this.#counts.refusedReloads++;
    this.#log(
      `warning: router: kept ${short(this.#served.digest)}, because the new one may not serve: ${why}`,
    );
    return "kept";
  }

  #swap(served: Served, previous: Served | undefined): void {
    this.#served = served;
    this.#previous = previous;
    this.#sinceMs = this.#place.clock.nowMs();
    this.#warnOfFields();
    this.#tellServing();
  }

  #tellServing(): void {
    const routers = [this.#served, this.#previous].flatMap((each) => (each === undefined ? [] : [each]));
    this.#place.onServe?.(
      routers.flatMap((each) => [each, ...(each.withoutPolicy ? [each.withoutPolicy] : [])]),
    );
  }

  /** Another process on the same book may have rolled back the router that serves here. */
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

/** Reason why the newest requested policy does not serve. */
function notServedBy({ refusal, passedOver }: Loaded): string | undefined {
  return refusal?.why ?? passedOver;
}

function warningOf({ refusal, passedOver }: Loaded): "warning: " | "" {
  return refusal?.kind === "fault" || passedOver !== undefined ? "warning: " : "";
}
