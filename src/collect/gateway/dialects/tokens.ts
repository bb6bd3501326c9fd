/** Exact token ids and logprobs in the forms that inference servers add to OpenAI replies.
 *  vLLM (`return_token_ids`): `prompt_token_ids` and `choices[].token_ids`, logprobs in the OpenAI form.
 *  SGLang: `meta_info` with `output_token_logprobs` as [logprob, id, text]. Absent stays absent: nothing is guessed. */
import type { ReplyTokens } from "./dialect.ts";
import { isObject, type JsonObject, listAt, objectAt, tokenIdsAt } from "./json.ts";

export function readTokens(body: JsonObject, choices: readonly unknown[]): { tokens?: ReplyTokens } {
  const prompt = promptIds(body) ?? promptIds(choices[0]);
  const samples = choices.map((choice) => sampleOf(choice, choices.length === 1 ? body : undefined));
  if (prompt === undefined || samples.length === 0) return {};
  const whole = samples.flatMap((each) => (each === undefined || each.ids.length === 0 ? [] : [each]));
  return whole.length === samples.length ? { tokens: { prompt, samples: whole } } : {};
}

function promptIds(value: unknown): number[] | undefined {
  const meta = objectAt(value, "meta_info");
  return (
    tokenIdsAt(value, "prompt_token_ids") ??
    tokenIdsAt(meta, "prompt_token_ids") ??
    tokenIdsAt(meta, "input_token_ids") ??
    pairs(listAt(meta, "input_token_logprobs"))?.ids
  );
}

function sampleOf(choice: unknown, body: JsonObject | undefined) {
  const meta = objectAt(choice, "meta_info") ?? objectAt(body, "meta_info");
  const fromMeta = pairs(listAt(meta, "output_token_logprobs"));
  if (fromMeta !== undefined) return fromMeta;
  const ids = tokenIdsAt(choice, "token_ids");
  const logprobs = logprobsOf(objectAt(choice, "logprobs"));
  if (ids === undefined || logprobs === undefined || ids.length !== logprobs.length) return undefined;
  return { ids, logprobs };
}

/** Chat: `content[].logprob`; completions: `token_logprobs[]`. */
function logprobsOf(logprobs: JsonObject | undefined): number[] | undefined {
  const content = listAt(logprobs, "content");
  const values = content?.map((each) => (isObject(each) ? each.logprob : undefined));
  const all = values ?? listAt(logprobs, "token_logprobs");
  return all?.every((each) => Number.isFinite(each)) ? (all as number[]) : undefined;
}

function pairs(entries: unknown[] | undefined): { ids: number[]; logprobs: number[] } | undefined {
  if (entries === undefined) return undefined;
  const ids: number[] = [];
  const logprobs: number[] = [];
  for (const entry of entries) {
    if (!Array.isArray(entry)) return undefined;
    const [logprob, id] = entry as unknown[];
    if (typeof id !== "number" || id >>> 0 !== id) return undefined;
    ids.push(id);
    // The first token of a prompt has no logprob; nobody asks for it either.
    logprobs.push(typeof logprob === "number" && Number.isFinite(logprob) ? logprob : 0);
  }
  return { ids, logprobs };
}
