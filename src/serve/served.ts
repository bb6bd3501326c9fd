/** Builds a router for serving: around a checkpoint, or from the configuration alone.
 *  In: a configuration, a checkpoint, a table. Out: a Served. released-routers.ts decides if a verdict releases it. */
import { type Digest, parseId, RollbookError } from "../base/index.ts";
import type { RevisionKey } from "../contract/index.ts";
import { baselineOf } from "../learn/index.ts";
import {
  type Checkpoint,
  type DecisionCandidate,
  digestRouter,
  distribution,
  type PolicyModel,
  parseStaticTable,
  policyOf,
  type Router,
  type StaticTable,
  type ValueSpec,
} from "../policy/index.ts";
import { defaultTable } from "./candidates.ts";
import { constraintsOf, DEFAULT_EXPLORATION, EPSILON_EXPLORATION, type RouterConfig } from "./config.ts";
import { declaredSoftmax, softmaxOf } from "./strategy.ts";

export interface Served {
  readonly router: Router;
  readonly digest: Digest;
  /** Revision under which its decisions are logged. */
  readonly revision: RevisionKey;
  /** Reason, in words, why this router serves. */
  readonly why: string;
  /** Model of the learned policy. */
  readonly model?: PolicyModel;
  /** Gate verdict that releases this router. */
  readonly verdict?: Digest;
  /** Same router without its policy; it decides if the policy fails. */
  readonly withoutPolicy?: Served;
}

export function serve(
  router: Router,
  facts: Omit<Served, "router" | "digest" | "revision" | "withoutPolicy">,
): Served {
  const digest = digestRouter(router);
  const { policy, ...rest } = router;
  return {
    ...{ router, digest, revision: { id: parseId(`router-${digest.slice(7, 19)}`), digest } },
    ...facts,
    ...(policy === undefined
      ? {}
      : {
          withoutPolicy: serve(
            { ...rest, floor: 0 },
            { why: "the policy failed, so the static table decides" },
          ),
        }),
  };
}

/** Router that serves without a checkpoint. */
export function serveStatic(config: RouterConfig, table: StaticTable, why: string): Served {
  const { strategy, floor = 0 } = config;
  const fallback = strategy === "epsilon-greedy" ? EPSILON_EXPLORATION : DEFAULT_EXPLORATION;
  const router = { table, floor: 0, exploration: config.exploration ?? fallback, ...limitsOf(config) };
  return strategy === "softmax"
    ? serve({ ...router, floor, policy: declaredSoftmax(config.family, softmaxOf(config)) }, { why })
    : serve(router, { why });
}

/** Router around the policy of a checkpoint, with a floor and an exploration. */
export function routerAround(
  checkpoint: Checkpoint,
  config: RouterConfig,
  { table, floor, exploration }: Pick<Router, "table" | "floor" | "exploration">,
): Router {
  return { policy: policyOf(checkpoint), table, floor, exploration, ...limitsOf(config) };
}

/** Configured table, else the one fitted in training (which the gate judges by), else the list of candidates. */
export function tableFor(
  config: RouterConfig,
  {
    configured,
    model,
    ids,
  }: { configured: StaticTable | undefined; model?: PolicyModel; ids: readonly string[] },
): StaticTable {
  if (configured !== undefined) return configured;
  const fitted = model === undefined ? undefined : baselineOf(model);
  if (fitted !== undefined) return parseStaticTable(JSON.stringify(fitted.source), "the checkpoint's table");
  if (ids.length > 0) return defaultTable(config, ids);
  throw new RollbookError(
    "no-table",
    {},
    "there is neither a static table nor a list of candidates. Set router.table or router.candidates.",
  );
}

/** Refuses, at load time, a checkpoint that could never decide here, so that no request waits for it. */
export function requireFit(
  { model, revision }: Checkpoint,
  {
    family,
    candidates,
    where,
    router,
    embeddings,
  }: {
    family: string;
    candidates: readonly DecisionCandidate[];
    where: string;
    router: Router;
    embeddings?: RouterConfig["embeddings"];
  },
): void {
  const { id, family: own } = revision.record;
  const embedding = embeddingOf(model);
  if (embedding !== undefined && embeddings === undefined)
    throw new RollbookError(
      "no-embedding",
      { where, model: embedding.model },
      `${where}: revision ${id} reads embeddings of ${embedding.model}, and the router has no endpoint that makes them. Set router.embeddings.url.`,
    );
  if (own !== family)
    throw new RollbookError(
      "policy-family-mismatch",
      { where, expected: family, actual: own },
      `${where}: revision ${id} is of family ${own}, the router serves ${family}. Name a checkpoint of ${family}, or set router.family.`,
    );
  if (candidates.length === 0) return;
  const arms = new Set(model.arms);
  if (!candidates.some((one) => arms.has(one.id)))
    throw new RollbookError(
      "unseen-candidate",
      { where, candidates: candidates.map((one) => one.id), known: model.arms },
      `${where}: revision ${id} knows none of the candidates (${candidates.map((one) => one.id).join(", ")}): it was trained on decisions among ${model.arms.join(", ")}. Name candidates that it knows, or train a policy on decisions among these.`,
    );
  // A test question shows features that a candidate lacks.
  distribution({ prompt: "", fields: {} }, candidates, router);
}

/** Embeddings that a policy reads, if any. */
export function embeddingOf(model: PolicyModel | undefined): ValueSpec["embedding"] {
  return model?.spec?.schema === "rollbook.feature-spec.v2" ? model.spec.embedding : undefined;
}

function limitsOf(config: RouterConfig): Pick<Router, "constraints"> {
  const constraints = constraintsOf(config);
  return constraints === undefined ? {} : { constraints };
}
