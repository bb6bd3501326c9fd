/** Chooses the target of a call: the model that the client names, or the candidate of a router, and the next
 *  candidate after a failure. In: the facts of the request. Out: the target, the body for the target, and the
 *  decisions to record. Sends nothing. */
import { given } from "../../../base/index.ts";
import type { PromptVectors } from "../../../policy/index.ts";
import type { RequestFacts } from "../dialects/index.ts";
import type { RoutedDecision, Target } from "../upstream/index.ts";
import { parseBody, textOfBody } from "../wire/index.ts";
import type { CallContext, IncomingCall } from "./call-context.ts";
import type { CallEvent } from "./call-events.ts";
import { rewrittenBody } from "./outgoing.ts";

const NONE: ReadonlySet<string> = new Set();

export class CallTarget {
  readonly #in: IncomingCall;
  readonly #deps: Pick<CallContext, "routes" | "isResting">;
  readonly #call: number;
  readonly #vectors: PromptVectors | undefined;
  #failed: Set<string> | undefined;
  /** One decision for each candidate that was called. */
  readonly decided: RoutedDecision[] = [];
  /** Candidate of the router. Empty if the client named a model. */
  candidate = "";
  target!: Target;
  /** Model name as the client sent it. */
  asked = "";
  /** Only names of the configuration: clients must not be able to create metric series. */
  label = "";
  /** Undefined if the body passes unchanged. */
  sent: Buffer | undefined;

  /** `vectors` of the prompt, if the router reads them. */
  constructor(
    incoming: IncomingCall,
    { call, vectors }: { call: number; vectors: PromptVectors | undefined },
    deps: Pick<CallContext, "routes" | "isResting">,
  ) {
    this.#in = incoming;
    this.#call = call;
    this.#vectors = vectors;
    this.#deps = deps;
  }

  /** `text` is the body as text. False if the model is unknown, or no candidate is left. */
  choose(request: RequestFacts, text: string): boolean {
    const { dialect, body, rollout } = this.#in;
    const { routes, isResting } = this.#deps;
    this.asked = request.model;
    if (routes.isAlias(request.model)) {
      const choice = routes.choose(request.model, request, {
        rollout: rollout.id,
        call: this.#call,
        callKey: rollout.callKeys.key(String(this.#call)),
        router: rollout.opening.router,
        requestBytes: body.length,
        failed: this.#failed ?? NONE,
        isResting,
        vectors: this.#vectors,
      });
      if (choice === undefined) return false;
      this.decided.push(choice.decided);
      this.target = choice.target;
      this.candidate = choice.candidate;
      this.label = request.model;
    } else {
      const target = routes.named(request.model);
      if (target === undefined) return false;
      this.target = target;
      this.label = target.label;
    }
    this.sent = rewrittenBody(body, request, { text, dialect: dialect.name, target: this.target });
    return true;
  }

  /** Replaces the failed candidate by another. False if no candidate is left. */
  chooseNext(): boolean {
    this.#failed = new Set(this.#failed).add(this.candidate);
    return this.choose(readAgain(this.#in), textOfBody(this.#in.body));
  }

  /** Facts of the last decision, for listeners. */
  route(): CallEvent["route"] {
    const last = this.decided.at(-1);
    if (last === undefined) return undefined;
    const { decision, candidates, revision } = last;
    const { reason, chosen, probabilities, confidence, policy } = decision;
    return {
      ...{ family: last.family, revision, reason, probability: probabilities[chosen]! },
      ...{ candidates: candidates.length, ...given({ policy, confidence: confidence ?? undefined }) },
      ...(this.#failed === undefined ? {} : { failed: [...this.#failed] }),
    };
  }
}

/** Parses the body again: few calls need its facts, and a long prompt would take the memory twice. */
export function readAgain({ dialect, body }: IncomingCall): RequestFacts {
  return dialect.readRequest(parseBody(body))!;
}
