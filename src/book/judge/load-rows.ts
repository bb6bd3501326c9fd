/** The rows that policies are judged by, as these policies read them: with embeddings, where one needs them. */
import { RollbookError } from "../../base/index.ts";
import type { ValueSpec } from "../../policy/index.ts";
import { type DecisionRequest, type DecisionSource, isDataset, loadDecisions } from "../decisions/index.ts";
import { type EmbeddingPlace, embedRows } from "../embed/index.ts";
import { requireAdmitted } from "../rollouts/index.ts";
import type { LoadedPolicy } from "./load-policy.ts";

export async function loadJudgeRows(
  source: DecisionSource,
  policies: readonly LoadedPolicy[],
  request: DecisionRequest & { readonly embeddings?: EmbeddingPlace | undefined },
): ReturnType<typeof loadDecisions> {
  const loaded = await loadDecisions(source, request);
  if (loaded.admitted !== undefined) requireAdmitted(loaded.admitted);
  const model = embeddingModel(policies);
  if (model === undefined) return loaded;
  const cache = request.embeddings?.cache ?? (isDataset(source) ? undefined : source.root);
  return { ...loaded, rows: await embedRows(loaded.rows, model, { ...request.embeddings, cache }) };
}

function embeddingModel(policies: readonly LoadedPolicy[]): string | undefined {
  const models = new Set(
    policies.flatMap(
      ({ checkpoint }) => (checkpoint.model.spec as ValueSpec | undefined)?.embedding?.model ?? [],
    ),
  );
  if (models.size < 2) return [...models][0];
  throw new RollbookError(
    "bad-options",
    { models: [...models] },
    `the policies read embeddings of ${[...models].join(" and ")}. Judge those of one model at a time.`,
  );
}
