/** Embeddings for the policy that a router serves, where its configuration names an endpoint. */
import type { RouterConfig, ServedRouter } from "../../serve/index.ts";
import { type EmbedPrompt, promptEmbedder } from "../embed/index.ts";

export function embedderOf(
  { embeddings }: Pick<RouterConfig, "embeddings">,
  router: ServedRouter,
  env: Readonly<Record<string, string | undefined>> = process.env,
  log?: (line: string) => void,
): EmbedPrompt | undefined {
  if (embeddings === undefined) return undefined;
  const model = () => router.active.served.model;
  return promptEmbedder({ url: embeddings.url, key: env.ROLLBOOK_EMBEDDINGS_KEY, model, log });
}
