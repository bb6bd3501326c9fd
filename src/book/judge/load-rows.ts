/** Loads the rows that judge policies, in the form that these policies read: with embeddings if one of them needs
 *  embeddings. */
import { RollbookError } from "../../base/index.ts";
import { TrainerBatch } from "../../contract/index.ts";
import type { ValueSpec } from "../../policy/index.ts";
import { readRecord } from "../../store/index.ts";
import { type DecisionRequest, type DecisionSource, isDataset, loadDecisions } from "../decisions/index.ts";
import { type EmbeddingPlace, embedRows } from "../embed/index.ts";
import type { OpenBook } from "../open/index.ts";
import { requireAdmitted } from "../rollouts/index.ts";
import type { LoadedPolicy } from "./load-policy.ts";

export async function loadJudgeRows(
  source: DecisionSource,
  policies: readonly LoadedPolicy[],
  request: DecisionRequest & { readonly embeddings?: EmbeddingPlace | undefined },
): ReturnType<typeof loadDecisions> {
  const family = request.family ?? (isDataset(source) ? undefined : await trainedOn(source, policies));
  const loaded = await loadDecisions(source, { ...request, family });
  if (loaded.admitted !== undefined) requireAdmitted(loaded.admitted);
  const model = embeddingModel(policies);
  if (model === undefined) return loaded;
  const cache = request.embeddings?.cache ?? (isDataset(source) ? undefined : source.root);
  return { ...loaded, rows: await embedRows(loaded.rows, model, { ...request.embeddings, cache }) };
}

/** Family of the decisions that the policies learned from, if this book has their batches and they agree. */
async function trainedOn(book: OpenBook, policies: readonly LoadedPolicy[]): Promise<string | undefined> {
  const index = await book.index();
  const families = new Set<string>();
  for (const { checkpoint } of policies) {
    const batch = checkpoint.revision.record.training?.batches[0];
    if (batch === undefined || index.record(batch) === undefined) continue;
    families.add((await readRecord(book.store, TrainerBatch, batch)).selection.family);
  }
  return families.size === 1 ? [...families][0] : undefined;
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
