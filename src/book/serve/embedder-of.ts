/** Makes the embedder for the policies of a router, if its configuration names an endpoint. */
import type { Clock } from "../../base/index.ts";
import type { RouterConfig, ServedRouter } from "../../serve/index.ts";
import { type EmbedPrompt, promptEmbedder } from "../embed/index.ts";

export function embedderOf(
  { embeddings }: Pick<RouterConfig, "embeddings">,
  router: ServedRouter,
  {
    env = process.env,
    ...rest
  }: {
    readonly clock: Clock;
    readonly env?: Readonly<Record<string, string | undefined>> | undefined;
    readonly log?: ((line: string) => void) | undefined;
  },
): EmbedPrompt | undefined {
  if (embeddings === undefined) return undefined;
  const models = () => router.embeddingModels;
  return promptEmbedder({ url: embeddings.url, key: env.ROLLBOOK_EMBEDDINGS_KEY, models, ...rest });
}
