/** Adds prompt embeddings to rows: from the cache of the book, and the missing ones from an endpoint.
 *  In: rows, a model, a source of vectors. Out: the rows with vectors. Equal prompts are requested once. */
import { RollbookError } from "../../base/index.ts";
import type { DecisionContext } from "../../policy/index.ts";
import { openEmbeddingCache } from "./embedding-cache.ts";
import { askEmbeddings } from "./embedding-endpoint.ts";

/** Source of vectors. */
export interface EmbeddingPlace {
  /** URL of the endpoint; if absent, only the cache is used. */
  readonly url?: string | undefined;
  readonly key?: string | undefined;
  /** Folder of the book whose cache is used; if absent or missing, no cache is used. */
  readonly cache?: string | undefined;
}

/** Number of prompts in one commit of the cache. A run that is stopped does not request committed prompts again. */
const COMMITTED = 512;

export async function embedRows<Row extends { readonly context: DecisionContext }>(
  rows: readonly Row[],
  model: string,
  place: EmbeddingPlace,
): Promise<Row[]> {
  const prompts = [...new Set(rows.map(({ context }) => context.prompt))].filter((prompt) => prompt !== "");
  const vectors = await embedTexts(prompts, model, place);
  return rows.map((row) => ({
    ...row,
    context: { ...row.context, embedding: vectors.get(row.context.prompt) },
  }));
}

async function embedTexts(
  texts: readonly string[],
  model: string,
  { url, key, cache: folder }: EmbeddingPlace,
): Promise<Map<string, Float32Array>> {
  const cache = openEmbeddingCache(folder);
  try {
    const found = cache?.get(model, texts) ?? new Map<string, Float32Array>();
    const missing = texts.filter((text) => !found.has(text));
    if (missing.length > 0 && url === undefined) throw notCached(model, missing.length, texts.length);
    for (let at = 0; at < missing.length; at += COMMITTED) {
      const asked = missing.slice(at, at + COMMITTED);
      const made = await askEmbeddings({ url: url!, model, key }, asked);
      const fresh = new Map(asked.map((text, i) => [text, made[i]!]));
      cache?.put(model, fresh);
      for (const [text, vector] of fresh) found.set(text, vector);
    }
    requireOneSize(model, found);
    return found;
  } finally {
    cache?.close();
  }
}

function requireOneSize(model: string, vectors: ReadonlyMap<string, Float32Array>): void {
  const sizes = new Set([...vectors.values()].map(({ length }) => length));
  if (sizes.size < 2) return;
  throw new RollbookError(
    "bad-embedding",
    { model, sizes: [...sizes] },
    `embeddings of ${model} have the lengths ${[...sizes].join(" and ")}: the endpoint has changed. Remove embeddings.db from the book, and train again.`,
  );
}

function notCached(model: string, missing: number, all: number): RollbookError {
  return new RollbookError(
    "no-embedding",
    { model, missing },
    `the policy reads embeddings of ${model}, and ${missing} of ${all} prompts have none in the cache of the book. Name the endpoint with --embeddings URL.`,
  );
}
