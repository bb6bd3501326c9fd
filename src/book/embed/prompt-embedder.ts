/** Embeds prompts of live requests for a serving router.
 *  In: a prompt. Out: its vectors by model, without those that the endpoint failed to make; the policy then reports it,
 *  and the table decides. Undefined if no policy reads vectors. Keeps the last vectors in memory, because a
 *  conversation asks for one prompt repeatedly. A call waits for the vectors, so the endpoint gets one try with a
 *  timeout. After a failure it is not asked for a while. */
import { type Clock, reasonOf } from "../../base/index.ts";
import type { PromptVectors } from "../../policy/index.ts";
import { askEmbeddings, isEndpointAway } from "./embedding-endpoint.ts";

export type EmbedPrompt = (prompt: string, signal?: AbortSignal) => Promise<PromptVectors | undefined>;

const KEPT = 1024;
const TIMEOUT_MS = 1_500;
/** Pause after a failure of the endpoint: without it, every routed call would wait. */
const REST_MS = 5_000;

export function promptEmbedder(options: {
  readonly url: string;
  readonly key?: string | undefined;
  /** Embedding models that the serving policies read. */
  readonly models: () => readonly string[];
  readonly clock: Clock;
  readonly log?: ((line: string) => void) | undefined;
}): EmbedPrompt {
  const kept = new Map<string, Promise<Float32Array | undefined>>();
  let restsUntilMs = 0;
  const ask = async (model: string, prompt: string, signal: AbortSignal | undefined) => {
    const patience = { tries: 1, timeoutMs: TIMEOUT_MS, signal };
    const [vector] = await askEmbeddings({ ...options, model }, [prompt], patience);
    return vector;
  };
  const vectorOf = async (model: string, prompt: string, signal: AbortSignal | undefined) => {
    const key = `${model}\0${prompt}`;
    let asked = kept.get(key);
    if (asked === undefined) {
      if (options.clock.nowMs() < restsUntilMs) return undefined;
      if (kept.size >= KEPT) kept.delete(kept.keys().next().value!);
      asked = ask(model, prompt, signal).catch((error: unknown) => {
        kept.delete(key);
        if (isEndpointAway(error)) restsUntilMs = options.clock.nowMs() + REST_MS;
        options.log?.(`router: ${reasonOf(error)}`);
        return undefined;
      });
      kept.set(key, asked);
    }
    return asked;
  };
  return async (prompt, signal) => {
    const models = options.models();
    if (models.length === 0 || prompt === "") return undefined;
    const vectors = new Map<string, Float32Array>();
    const add = async (model: string) => {
      const vector = await vectorOf(model, prompt, signal);
      if (vector !== undefined) vectors.set(model, vector);
    };
    await Promise.all(models.map(add));
    return vectors;
  };
}
