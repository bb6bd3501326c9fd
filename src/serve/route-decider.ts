/** Decides one question with the serving router: its draw, the fallback if its policy or table fails, and the shadow.
 *  In: a question, the serving routers. Out: an answer that can be explained, drawn again, or followed by the next
 *  choice. Draws depend only on the seed and the call, not on the order of calls. Runs for every routed call. */
import { type Rng, RollbookError, reasonOf, rngFrom, short, splitKey } from "../base/index.ts";
import type { RouteAnswer, RouteQuestion } from "../collect/gateway/index.ts";
import { type Decision, type DecisionCandidate, decide, distribution, draw } from "../policy/index.ts";
import { type Declare, declareWith, listTable } from "./candidates.ts";
import type { RouterConfig } from "./config.ts";
import { type Served, serve } from "./served.ts";

/** Decision with the data to explain it, to draw it again, or to choose again after a failure. */
export interface ServedAnswer extends RouteAnswer {
  readonly served: Served;
  readonly question: RouteQuestion;
  /** The draw is `rngFrom(seed).split(drawKey)`. */
  readonly drawKey: number;
}

/** Routers that decide, and the shadow beside them. */
interface InService {
  readonly served: Served;
  readonly previous: Served | undefined;
  readonly shadow: Served | undefined;
}

export class RouteDecider {
  readonly #config: RouterConfig;
  readonly #declare: Declare;
  readonly #rng: Rng;
  /** Separate generators, so that draws of the shadow and the holdback change no choice. */
  readonly #shadowRng: Rng;
  readonly #holdbackRng: Rng;
  readonly #log: (line: string) => void;
  #unnamed = 0;
  readonly #lists = new Map<string, Served>();
  readonly #told = new Set<string>();
  readonly counts = { decisions: 0, fallbacks: 0, shadowed: 0, disagreed: 0 };

  /** `seed` replaces the seed of the configuration, which is limited to 2^53. */
  constructor(
    config: RouterConfig,
    { seed = config.seed, log }: { seed?: bigint | number | undefined; log: (line: string) => void },
  ) {
    this.#config = config;
    this.#declare = declareWith(config);
    this.#rng = rngFrom(seed);
    this.#shadowRng = this.#rng.split("shadow");
    this.#holdbackRng = this.#rng.split("holdback");
    this.#log = log;
  }

  /** Answers whenever a static router would: if the policy fails, the table decides. */
  choose(question: RouteQuestion, { served, previous, shadow }: InService): ServedAnswer {
    const candidates = this.#declare(question.candidates);
    const asked = candidates === question.candidates ? question : { ...question, candidates };
    const by = previous === undefined ? served : this.#arm(question, served, previous);
    return this.#decide(asked, { served: by, drawKey: this.#drawKey(question), shadow });
  }

  /** Makes a second step of the same router after candidates failed, with its probabilities over the others. */
  chooseNext({ question, served, drawKey }: ServedAnswer, failed: readonly string[]): ServedAnswer {
    const gone = new Set(failed);
    const candidates = question.candidates.map((one) =>
      gone.has(one.id) && one.selectable ? { ...one, selectable: false, reasons: ["failed"] } : one,
    );
    return this.#decide({ ...question, candidates }, { served, drawKey, shadow: undefined });
  }

  /** While a new router is watched, a share of the rollouts stays with the previous router. */
  #arm({ call }: RouteQuestion, served: Served, previous: Served): Served {
    const holdback = this.#config.rollback?.holdback ?? 0;
    if (holdback === 0 || call === undefined) return served;
    const rollout = call.replace(/\.\d+$/, "");
    return this.#holdbackRng.split(splitKey(rollout)).float() < holdback ? previous : served;
  }

  #decide(
    question: RouteQuestion,
    { served, drawKey, shadow }: { served: Served; drawKey: number; shadow: Served | undefined },
  ): ServedAnswer {
    const { candidates } = question;
    const isFirst = !anyFailed(candidates);
    const key = isFirst ? drawKey : keyWithout(drawKey, candidates.filter(hasFailed));
    this.counts.decisions++;
    let decision: Decision;
    let by = served;
    try {
      decision = decide(question.context, candidates, served.router, this.#rng.split(key));
    } catch (error) {
      ({ decision, by } = this.#fallBack(question, { served, key, error }));
    }
    const { policy } = by.router;
    decision.candidates ??= candidates;
    if (by.model !== undefined && policy !== undefined) decision.policy = policy.revision;
    if (isFirst && shadow !== undefined) {
      const shadowed = this.#askShadow(question, { shadow, key, chosen: decision.chosen });
      if (shadowed !== undefined) decision.shadow = shadowed;
    }
    return {
      decision,
      family: this.#config.family,
      revision: by.revision,
      served: by,
      question,
      drawKey,
    };
  }

  /** Falls back to the router without its policy if the policy failed. If the table names no candidate, it falls back
   *  to the list of candidates. */
  #fallBack(
    { context, candidates }: Pick<RouteQuestion, "context" | "candidates">,
    { served, key, error }: { served: Served; key: number; error: unknown },
  ): { decision: Decision; by: Served } {
    if (!candidates.some((one) => one.selectable) || mustRefuse(error, served)) throw error;
    this.counts.fallbacks++;
    this.#logOnce(`router: ${short(served.digest)} could not decide: ${reasonOf(error)}`);
    const next = served.withoutPolicy ?? this.#listOf(candidates, served);
    if (next.digest === served.digest) throw error;
    try {
      return { decision: decide(context, candidates, next.router, this.#rng.split(key)), by: next };
    } catch (cause) {
      return this.#fallBack({ context, candidates }, { served: next, key, error: cause });
    }
  }

  #listOf(candidates: readonly DecisionCandidate[], { router }: Served): Served {
    const ids = candidates.map(({ id }) => id);
    const key = JSON.stringify(ids);
    const known = this.#lists.get(key);
    if (known !== undefined) return known;
    const { exploration, constraints } = router;
    const list = serve(
      { table: listTable(ids), floor: 0, exploration, ...(constraints === undefined ? {} : { constraints }) },
      { why: "the table names none of the candidates, so they are taken in the order of the list" },
    );
    if (this.#lists.size >= MOST_LISTS) this.#lists.clear();
    this.#lists.set(key, list);
    return list;
  }

  #askShadow(
    { context, candidates }: RouteQuestion,
    { shadow, key, chosen: acted }: { shadow: Served; key: number; chosen: number },
  ): Decision["shadow"] {
    try {
      const { probabilities } = distribution(context, candidates, shadow.router);
      const chosen = draw(probabilities, this.#shadowRng.split(key));
      this.counts.shadowed++;
      if (chosen !== acted) this.counts.disagreed++;
      return { revision: shadow.revision, chosen, probabilities };
    } catch (error) {
      // A shadow does not act, so its failure is only logged.
      this.#logOnce(`router: the shadow ${short(shadow.digest)} could not decide: ${reasonOf(error)}`);
      return undefined;
    }
  }

  #drawKey({ call, callKey, seed, context }: RouteQuestion): number {
    if (call !== undefined) return callKey ?? splitKey(call);
    if (seed !== undefined)
      return splitKey(`seed ${seed}\n${context.fields.messages ?? 0}\n${context.prompt}`);
    return splitKey(`unnamed ${this.#unnamed++}`);
  }

  /** A fault that every request meets is logged once, and counted in `status()`. */
  #logOnce(line: string): void {
    if (this.#told.has(line)) return;
    if (this.#told.size >= MOST_LISTS) this.#told.clear();
    this.#told.add(line);
    this.#log(line);
  }
}

/** Key of the draw among the remaining candidates. */
function keyWithout(drawKey: number, failed: readonly DecisionCandidate[]): number {
  return splitKey(`${drawKey} without ${failed.map(({ id }) => id).join(" ")}`);
}

function anyFailed(candidates: readonly DecisionCandidate[]): boolean {
  for (const candidate of candidates) if (hasFailed(candidate)) return true;
  return false;
}

function hasFailed({ selectable, reasons }: DecisionCandidate): boolean {
  return !selectable && reasons.includes("failed");
}

/** Maximum number of candidate lists, and of logged lines, that are remembered. */
const MOST_LISTS = 1024;

/** True if the constraints require a refusal. A router without its policy has the same constraints, so no fallback
 *  helps. */
function mustRefuse(error: unknown, { router: { constraints } }: Served): boolean {
  return constraints?.onNone === "refuse" && error instanceof RollbookError && error.code === "no-candidate";
}
