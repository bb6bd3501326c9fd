/** One decision without a call: what the router would choose, and why.
 *  In: a configuration, a question, a book where there is one. Out: the decision with its explanation. Writes nothing. */
import { type Clock, RollbookError } from "../../base/index.ts";
import {
  type DecisionCandidate,
  type DecisionContext,
  fieldsNeverSent,
  readCheckpoint,
} from "../../policy/index.ts";
import {
  declaredCandidates,
  type Explanation,
  openRouter,
  type RouterConfig,
  type RouterStatus,
} from "../../serve/index.ts";
import type { OpenBook } from "../open/index.ts";
import { requireKnownFields } from "./asked-fields.ts";
import { embedderOf } from "./embedder-of.ts";
import { policyReleasesOf, type Trusts, trustsOf } from "./policy-releases.ts";

interface AskRequest {
  /** The one message of the user, or the body of a chat request. The router sees what the gateway shows it of the request. */
  readonly prompt: string | object;
  /** More facts of the request; they stand above those of the gateway. */
  readonly fields?: DecisionContext["fields"] | undefined;
  /** Ids (default: all that are known). */
  readonly candidates?: readonly string[] | undefined;
  /** The candidates that are known (default: those of the router section, else those the checkpoint was trained on). */
  readonly known?: readonly DecisionCandidate[] | undefined;
  /** Fixes the draw, with the seed of the configuration. */
  readonly call?: string | undefined;
  readonly clock: Clock;
  /** Where ROLLBOOK_EMBEDDINGS_KEY is (default: the environment of this process). */
  readonly env?: Readonly<Record<string, string | undefined>> | undefined;
  /** Where released policies are found. */
  readonly book?: OpenBook | undefined;
  /** The checkpoint answers whether or not a gate verdict releases it (default: the router answers as it would serve). */
  readonly asksCheckpoint?: boolean | undefined;
  /** Whose signatures count, with `trust: signed` (default: the user's own key and those trusted beside it). */
  readonly trusts?: Trusts | undefined;
}

export interface AskedRouter {
  readonly explanation: Explanation;
  readonly candidates: readonly { readonly id: string; readonly probability: number }[];
  readonly status: Omit<RouterStatus, "counts" | "sinceMs">;
  /** Fields that the policy was trained on, that no call carries and that this question does not give. */
  readonly missingFields: readonly string[];
}

/** What the configuration declares, else what its checkpoint was trained on. */
function knownTo(config: RouterConfig): readonly DecisionCandidate[] {
  const declared = declaredCandidates(config);
  const { checkpoint } = config;
  if (declared.length > 0 || checkpoint === undefined || checkpoint === "released") return declared;
  return readCheckpoint(checkpoint).model.arms.map(bare);
}

function bare(id: string): DecisionCandidate {
  return { id, selectable: true, reasons: [], features: {} };
}

export async function askRouter(config: RouterConfig, request: AskRequest): Promise<AskedRouter> {
  const { prompt, fields, clock, book, call = "ask", known = knownTo(config) } = request;
  const candidates = request.candidates?.map((id) => known.find((one) => one.id === id) ?? bare(id)) ?? known;
  if (candidates.length === 0)
    throw new RollbookError(
      "no-candidate",
      {},
      "there is no candidate to choose among. Name a policy with --checkpoint, or the gateway's file with --config, or candidates with --candidate.",
    );
  const releases =
    book === undefined ? undefined : policyReleasesOf(book, { trusts: trustsOf(config, request.trusts) });
  // One question: nothing is watched.
  const { reload: _, ...once } = config;
  const router = await openRouter(once, { releases, clock, candidates, asksOnly: request.asksCheckpoint });
  const alias = config.aliases[0]!;
  // Loaded here, as it brings the HTTP client of the gateway.
  const { contextOfPrompt } = await import("../../collect/gateway/index.ts");
  const own = contextOfPrompt(prompt, alias);
  if (own === undefined)
    throw new RollbookError(
      "bad-request",
      {},
      'the request has no list of messages. Give a chat request, such as {"messages":[{"role":"user","content":"hello"}]}.',
    );
  if (fields !== undefined) requireKnownFields(fields, own.fields, config);
  const vectors = await embedderOf(config, router, { clock, env: request.env })?.(own.prompt);
  const context = { ...own, fields: { ...own.fields, ...fields }, vectors };
  const answer = router.choose({ alias, context, candidates, call });
  const { counts: __, sinceMs: ___, ...status } = router.status();
  return {
    explanation: router.explain(answer),
    candidates: candidates.map(({ id }, i) => ({ id, probability: answer.decision.probabilities[i]! })),
    status,
    missingFields: fieldsNeverSent(router.active.served.model).filter((name) => fields?.[name] === undefined),
  };
}
