/** Makes one decision without a call: the choice of the router, and the reasons.
 *  In: a configuration, a question, a book if there is one. Out: the decision with its explanation. Writes nothing. */
import { type Clock, nearestName, RollbookError } from "../../base/index.ts";
import {
  type Checkpoint,
  type DecisionCandidate,
  type DecisionContext,
  fieldsNeverSent,
} from "../../policy/index.ts";
import {
  declaredCandidates,
  type Explanation,
  openRouter,
  type PolicyReleases,
  type RouterConfig,
  type RouterStatus,
  readConfigured,
  releasedRevisionsOf,
} from "../../serve/index.ts";
import type { OpenBook } from "../open/index.ts";
import { requireKnownFields } from "./asked-fields.ts";
import { embedderOf } from "./embedder-of.ts";
import { policyReleasesOf, type Trusts, trustsOf } from "./policy-releases.ts";

interface AskRequest {
  /** Text of the single user message, or the body of a chat request. The router sees the same fields as through the
   *  gateway. */
  readonly prompt: string | object;
  /** Additional fields of the request; they override the fields of the gateway. */
  readonly fields?: DecisionContext["fields"] | undefined;
  /** Candidate ids (default: those of the route that the request names, else all known candidates). */
  readonly candidates?: readonly string[] | undefined;
  /** Known candidates (default: those of the router section, else those the checkpoint was trained on). */
  readonly known?: readonly DecisionCandidate[] | undefined;
  /** Of a gateway: the names of the candidates of each route. */
  readonly routes?: Readonly<Record<string, readonly string[]>> | undefined;
  /** Id of the call: together with the seed of the configuration it fixes the draw. */
  readonly call?: string | undefined;
  readonly clock: Clock;
  /** Environment that holds ROLLBOOK_EMBEDDINGS_KEY (default: the environment of this process). */
  readonly env?: Readonly<Record<string, string | undefined>> | undefined;
  /** Book that holds the released policies. */
  readonly book?: OpenBook | undefined;
  /** True if the checkpoint answers even if no gate verdict releases it (default: the router answers as it would
   *  serve). */
  readonly asksCheckpoint?: boolean | undefined;
  /** Keys whose signatures count with `trust: signed` (default: the user's own key and the keys trusted beside it). */
  readonly trusts?: Trusts | undefined;
}

export interface AskedRouter {
  readonly explanation: Explanation;
  readonly candidates: readonly { readonly id: string; readonly probability: number }[];
  readonly status: Omit<RouterStatus, "counts" | "sinceMs">;
  /** Fields that the policy was trained on, that calls do not carry and that this question does not give. */
  readonly missingFields: readonly string[];
}

/** Candidates that the configuration declares, else candidates that its checkpoint was trained on. */
async function knownTo(
  config: RouterConfig,
  releases: PolicyReleases | undefined,
): Promise<readonly DecisionCandidate[]> {
  const declared = declaredCandidates(config);
  const { checkpoint, family } = config;
  if (declared.length > 0 || checkpoint === undefined) return declared;
  if (checkpoint !== "released") return readConfigured(checkpoint).model.arms.map(bare);
  const released = releases === undefined ? undefined : await newestCheckpoint(releases, family);
  return released?.model.arms.map(bare) ?? [];
}

/** Checkpoint of the newest release of the family that the book holds. */
async function newestCheckpoint(releases: PolicyReleases, family: string): Promise<Checkpoint | undefined> {
  for (const { revision } of releasedRevisionsOf(await releases.standing())) {
    const found = await releases.checkpoint(revision, family);
    if (found !== undefined) return found;
  }
  return undefined;
}

function bare(id: string): DecisionCandidate {
  return { id, selectable: true, reasons: [], features: {} };
}

function requireKnownCandidates(named: readonly string[], known: readonly DecisionCandidate[]): void {
  const ids = known.map(({ id }) => id);
  const unknown = named.find((id) => !ids.includes(id));
  if (unknown === undefined) return;
  const meant = nearestName(unknown, ids);
  throw new RollbookError(
    "no-candidate",
    { candidate: unknown, known: ids },
    `--candidate ${unknown}: the gateway's configuration has no such candidate. ${meant === undefined ? `It has ${ids.join(", ")}` : `Did you mean ${meant}? It has ${ids.join(", ")}`}.`,
  );
}

/** The route that the request names, else the first alias of the router. */
function aliasOf({ aliases }: RouterConfig, { prompt, routes }: AskRequest): string {
  const model = typeof prompt === "string" ? undefined : (prompt as { model?: unknown }).model;
  if (routes === undefined || typeof model !== "string") return aliases[0]!;
  if (Object.hasOwn(routes, model)) return model;
  const known = Object.keys(routes);
  const meant = nearestName(model, known);
  throw new RollbookError(
    "unknown-route",
    { model, known },
    `the request names the model ${model}, which is not a route of the gateway, so no router chooses for it. ${meant === undefined ? "" : `Did you mean ${meant}? `}Routes: ${known.join(", ")}.`,
  );
}

export async function askRouter(config: RouterConfig, request: AskRequest): Promise<AskedRouter> {
  const { prompt, fields, clock, book, call = "ask" } = request;
  const releases =
    book === undefined ? undefined : policyReleasesOf(book, { trusts: trustsOf(config, request.trusts) });
  const known = request.known ?? (await knownTo(config, releases));
  if (request.known !== undefined) requireKnownCandidates(request.candidates ?? [], request.known);
  const alias = aliasOf(config, request);
  const named = request.candidates ?? request.routes?.[alias];
  const candidates = named?.map((id) => known.find((one) => one.id === id) ?? bare(id)) ?? known;
  if (candidates.length === 0)
    throw new RollbookError(
      "no-candidate",
      {},
      `there is no candidate to choose among${config.checkpoint === "released" ? `: ${book === undefined ? "`checkpoint: released` needs a book (--book)" : `no released policy of ${config.family} is in the book`}` : ""}. Name a policy with --checkpoint, or the gateway's file with --config, or candidates with --candidate.`,
    );
  // A single question needs no reload watch.
  const { reload: _, ...once } = config;
  // The router is the one of the gateway, also if it is asked about some of its candidates.
  const all = [...known, ...candidates.filter((one) => !known.includes(one))];
  const router = await openRouter(once, {
    ...{ releases, clock, candidates: all, asksOnly: request.asksCheckpoint },
  });
  // Loaded on demand, because it loads the HTTP client of the gateway.
  const { contextOfPrompt } = await import("../../collect/gateway/index.ts");
  const own = contextOfPrompt(prompt, alias);
  if (own === undefined)
    throw new RollbookError(
      "bad-request",
      {},
      'the request has no list of messages. Give a chat request, such as {"messages":[{"role":"user","content":"hello"}]}.',
    );
  if (fields !== undefined)
    requireKnownFields(fields, own.fields, { config, served: router.active.served.model });
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
