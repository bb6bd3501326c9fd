export { type EmbeddingPlace, embedRows } from "./embed-rows.ts";
export { removeEmbeddingCache } from "./embedding-cache.ts";
export { type EmbedPrompt, promptEmbedder } from "./prompt-embedder.ts";
