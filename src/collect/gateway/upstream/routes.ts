/** Finds the model that answers. In: the model name that a client requested. Out: a target, and for an alias the
 *  decision that chose it. The router is a parameter (`choose`). The gateway logs its decision with the
 *  probabilities. After a failure the router chooses again among the remaining candidates. */
import { type Digest, type Id, parseId, type Rng } from "../../../base/index.ts";
import type { RevisionKey } from "../../../contract/index.ts";
import {
  type DecisionCandidate,
  type DecisionContext,
  type DecisionToLog,
  decide,
  digestRouter,
  type PromptVectors,
  parseStaticTable,
  promptOfMessages,
  type REQUEST_FIELDS,
  type Router,
} from "../../../policy/index.ts";
import type { GatewayConfig } from "../config.ts";
import { openAiChat, type RequestFacts, type Vendor } from "../dialects/index.ts";
import type { Choose } from "./choose.ts";
import { NamedRouters, type NamedRoutersOptions } from "./named-routers.ts";
import { dearestOf, type Target, type TargetFacts, targetOf } from "./targets.ts";

/** The recorded part of a decision. It is held during the call, so it does not contain the prompt. */
export interface RoutedDecision extends DecisionToLog {
  /** Family under which the step is sealed. */
  readonly family: Id;
}

interface Choice {
  readonly target: Target;
  readonly candidate: string;
  readonly decided: RoutedDecision;
  /** The router's input. */
  readonly context: DecisionContext;
}

const MAX_OTHERS = 1000;

interface Alias {
  readonly names: readonly string[];
  /** Upstreams of these models, each once. */
  readonly upstreams: readonly string[];
  /** The candidates while no model fails and no upstream rests. Always the same list object, so caches by list work. */
  readonly allOpen: readonly DecisionCandidate[];
}

export class Routes {
  readonly #config: GatewayConfig;
  readonly #targets = new Map<string, Target>();
  /** Models that are not configured, by the client's name. */
  readonly #others = new Map<string, Target>();
  readonly #choose: Choose;
  readonly #namedRouters: NamedRouters;
  readonly #aliases = new Map<string, Alias>();
  /** Vendors whose formats alone the upstreams of a model or an alias state to speak, by its name. */
  readonly #vendors = new Map<string, Vendor>();
  #family: { readonly name: string; readonly id: Id } | undefined;

  constructor(config: GatewayConfig, choose: Choose, named: NamedRoutersOptions = {}) {
    this.#config = config;
    this.#choose = choose;
    this.#namedRouters = new NamedRouters(named);
    for (const [name, model] of Object.entries(config.models)) this.#targets.set(name, targetOf(name, model));
    for (const [alias, names] of Object.entries(config.routes))
      this.#aliases.set(alias, this.#aliasOf(names));
    for (const name of this.names) {
      const stated = new Set(
        (this.#aliases.get(name)?.names ?? [name]).map((each) =>
          this.#statedAt(this.#targets.get(each)!.upstream),
        ),
      );
      const [vendor] = stated;
      if (stated.size === 1 && vendor !== undefined) this.#vendors.set(name, vendor);
    }
  }

  /** Undefined if the upstream states no dialect, or several. */
  #statedAt(upstream: string): Vendor | undefined {
    const { dialect } = this.#config.upstreams[upstream]!;
    return dialect === "both" ? undefined : dialect;
  }

  /** The only vendor whose formats the model or alias understands, if its upstreams state it. An upstream that states
   *  nothing may speak more formats than its address shows. */
  vendorOf(model: string): Vendor | undefined {
    const { defaultUpstream } = this.#config;
    if (this.#targets.has(model) || this.isAlias(model)) return this.#vendors.get(model);
    return defaultUpstream === undefined ? undefined : this.#statedAt(defaultUpstream);
  }

  get names(): string[] {
    return [...Object.keys(this.#config.models), ...this.aliases];
  }

  get aliases(): string[] {
    return [...this.#aliases.keys()];
  }

  /** True if the configuration has that name, or a client used it before. */
  isFamiliar(model: string): boolean {
    return this.#targets.has(model) || this.#others.has(model) || this.isAlias(model);
  }

  isAlias(model: string): boolean {
    return this.#aliases.has(model);
  }

  /** The highest price among the models that may answer to that name. It bounds the cost of a call. */
  dearest(model: string): Target["price"] {
    const names = this.#aliases.get(model)?.names ?? [model];
    return dearestOf(names.map((name) => this.#targets.get(name)?.price));
  }

  /** The price of a target in the journal. The highest price, if several configured models have the same facts. */
  priceOf(facts: TargetFacts): Target["price"] {
    const text = JSON.stringify(facts);
    const alike = [...this.#targets.values()].filter(({ factsText }) => factsText === text);
    return dearestOf(alike.map(({ price }) => price));
  }

  /** The target that a client named itself. Undefined if the model is unknown. */
  named(model: string): Target | undefined {
    const known = this.#targets.get(model) ?? this.#others.get(model);
    if (known !== undefined) return known;
    const { defaultUpstream } = this.#config;
    if (defaultUpstream === undefined) return undefined;
    const target = targetOf(model.slice(0, 512), { upstream: defaultUpstream }, "other");
    if (this.#others.size >= MAX_OTHERS) this.#others.clear();
    this.#others.set(model, target);
    return target;
  }

  /** Loads a named router in advance, because calls do not wait for the book. */
  ready(router: Digest): Promise<void> {
    return this.#namedRouters.ready(router);
  }

  /** Undefined once every candidate has failed. Skips `resting` upstreams, unless all of them rest. */
  choose(
    alias: string,
    request: RequestFacts,
    at: {
      rollout: string;
      call: number;
      /** The `splitKey` of the call's id. */
      callKey?: number | undefined;
      /** The named router that chooses instead of the default router. */
      router?: Digest | undefined;
      requestBytes: number;
      failed: ReadonlySet<string>;
      isResting: (upstream: string) => boolean;
      /** Additional facts for the router, besides those of the request. */
      fields?: DecisionContext["fields"] | undefined;
      vectors?: PromptVectors | undefined;
    },
  ): Choice | undefined {
    const candidates = this.#candidates(alias, at);
    if (candidates === undefined) return undefined;
    const own = contextOf(request, this.#config.router === undefined ? undefined : at.requestBytes);
    if (at.vectors !== undefined) own.vectors = at.vectors;
    const context = at.fields === undefined ? own : { ...own, fields: { ...at.fields, ...own.fields } };
    const { seed } = request.parameters;
    const question = { alias, context, candidates, call: `${at.rollout}.${at.call}`, callKey: at.callKey };
    const choose = at.router === undefined ? this.#choose : this.#namedRouters.chooserOf(at.router);
    const { decision, family, revision } = choose(
      Number.isFinite(seed) ? { ...question, seed: seed as number } : question,
    );
    const candidate = candidates[decision.chosen]!.id;
    if (this.#family?.name !== family) this.#family = { name: family, id: parseId(family, "family") };
    return {
      target: this.#targets.get(candidate)!,
      candidate,
      context,
      decided: {
        decision,
        context: { fields: context.fields },
        candidates,
        revision,
        turn: at.call,
        call: at.call,
        family: this.#family.id,
      },
    };
  }

  /** Undefined once every candidate has failed. */
  #candidates(
    alias: string,
    { failed, isResting }: { failed: ReadonlySet<string>; isResting: (upstream: string) => boolean },
  ): readonly DecisionCandidate[] | undefined {
    const { names, upstreams, allOpen } = this.#aliases.get(alias)!;
    if (failed.size === 0 && !anyRests(upstreams, isResting)) return allOpen;
    const left = names.filter((name) => !failed.has(name));
    if (left.length === 0) return undefined;
    const awake = left.filter((name) => !isResting(this.#targets.get(name)!.upstream));
    const selectable = new Set(awake.length > 0 ? awake : left);
    return names.map((id) => this.#candidate(id, selectable.has(id), failed.has(id)));
  }

  #aliasOf(names: readonly string[]): Alias {
    const allOpen = names.map((id) => Object.freeze(this.#candidate(id, true, false)));
    const upstreams = new Set(names.map((id) => this.#targets.get(id)!.upstream));
    return { names, upstreams: [...upstreams], allOpen: Object.freeze(allOpen) };
  }

  #candidate(id: string, selectable: boolean, failed: boolean): DecisionCandidate {
    const { price } = this.#targets.get(id)!;
    return {
      id,
      selectable,
      reasons: selectable ? [] : [failed ? "failed" : "resting"],
      features: price === undefined ? {} : { promptPrice: price.prompt, completionPrice: price.completion },
    };
  }
}

// Runs for every routed call. Array methods with a callback take several times as long.
function anyRests(upstreams: readonly string[], isResting: (upstream: string) => boolean): boolean {
  for (const upstream of upstreams) if (isResting(upstream)) return true;
  return false;
}

/** The choice without a router: the first working model of the list. */
export function firstInList(rng: Rng): Choose {
  const routers = new Map<string, { router: Router; revision: RevisionKey }>();
  return ({ alias, context, candidates }) => {
    let known = routers.get(alias);
    if (known === undefined) {
      const list = JSON.stringify(candidates.map(({ id }) => id));
      const table = parseStaticTable(`schema: rollbook.static-table.v1\ndefault: ${list}\n`, alias);
      const router = { table, floor: 0, exploration: 0 };
      const digest = digestRouter(router);
      // Every list is a separate router: two lists under one name would be two digests of one revision.
      known = { router, revision: { id: parseId(`first-in-list-${digest.slice(7, 19)}`), digest } };
      routers.set(alias, known);
    }
    const { router, revision } = known;
    return { decision: decide(context, candidates, router, rng), family: "gateway.first-in-list", revision };
  };
}

/** The router's view of a chat request: one user message, or a whole body. Undefined if the body is not a chat
 *  request. */
export function contextOfPrompt(prompt: string, model: string): DecisionContext;
export function contextOfPrompt(asked: string | object, model: string): DecisionContext | undefined;
export function contextOfPrompt(asked: string | object, model: string): DecisionContext | undefined {
  const body =
    typeof asked === "string" ? { model, messages: [{ role: "user", content: asked }] } : { ...asked, model };
  const facts = openAiChat.readRequest(body);
  return facts === undefined ? undefined : contextOf(facts, Buffer.byteLength(JSON.stringify(body)));
}

/** Approximate bytes per token of English text in common vocabularies. Used where no token count is known. */
export const BYTES_PER_TOKEN = 4;

/** The router's view: the user's last message, the shape of the request, and its length if limits need it. */
function contextOf(request: RequestFacts, requestBytes: number | undefined): DecisionContext {
  const { messages, tools, stream, maxTokens } = request;
  const fields: Partial<Record<(typeof REQUEST_FIELDS)[number], number | boolean>> = {
    messages: messages.length,
    tools: Array.isArray(tools) ? tools.length : 0,
    stream,
  };
  if (requestBytes !== undefined) {
    fields.requestTokens = Math.ceil(requestBytes / BYTES_PER_TOKEN);
    if (maxTokens !== undefined) fields.maxTokens = maxTokens;
  }
  return { prompt: promptOfMessages(messages), fields };
}
