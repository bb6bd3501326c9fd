/** Embeddings of prompts as requests come in, for a router that serves.
 *  In: a prompt. Out: its vector, or undefined where the policy in service reads none or the endpoint fails: the policy then
 *  says so, and the table decides. Keeps the last vectors in memory, because a conversation asks for one prompt repeatedly. */
import { reasonOf } from "../../base/index.ts";
import type { PolicyModel } from "../../policy/index.ts";
import { embeddingOf } from "../../serve/index.ts";
import { askEmbeddings } from "./embedding-endpoint.ts";

export type EmbedPrompt = (prompt: string) => Promise<Float32Array | undefined>;

const KEPT = 1024;

export function promptEmbedder(options: {
  readonly url: string;
  readonly key?: string | undefined;
  /** Of the policy in service. */
  readonly model: () => PolicyModel | undefined;
  readonly log?: ((line: string) => void) | undefined;
}): EmbedPrompt {
  const kept = new Map<string, Promise<Float32Array | undefined>>();
  const ask = async (model: string, prompt: string) => {
    const [vector] = await askEmbeddings({ ...options, model }, [prompt]);
    return vector;
  };
  return async (prompt) => {
    const model = embeddingOf(options.model())?.model;
    if (model === undefined || prompt === "") return undefined;
    const key = `${model}\0${prompt}`;
    let asked = kept.get(key);
    if (asked === undefined) {
      if (kept.size >= KEPT) kept.delete(kept.keys().next().value!);
      asked = ask(model, prompt).catch((error: unknown) => {
        kept.delete(key);
        options.log?.(`router: ${reasonOf(error)}`);
        return undefined;
      });
      kept.set(key, asked);
    }
    return asked;
  };
}
