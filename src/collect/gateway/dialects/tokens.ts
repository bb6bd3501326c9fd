/** Exact token ids and logprobs in the forms that inference servers add to OpenAI replies.
 *  vLLM (`return_token_ids`): `prompt_token_ids` of a chat reply, or of a choice of a completion, and
 *  `choices[].token_ids`; logprobs in the OpenAI form.
 *  SGLang: in the choice, `prompt_token_ids` and `token_ids` (chat: `response_token_ids`), or
 *  `meta_info.output_token_logprobs` as [logprob, id, text].
 *  Absent values stay absent: the module guesses nothing. */
import { LOGPROB_TOLERANCE } from "../../../contract/index.ts";
import type { ReplyTokens } from "./dialect.ts";
import { isObject, type JsonObject, listAt, objectAt, tokenIdsAt } from "./json.ts";

export function readTokens(body: JsonObject, choices: readonly unknown[]): { tokens?: ReplyTokens } {
  const prompt = promptIds(body) ?? sharedPrompt(choices);
  const samples = choices.map((choice) => sampleOf(choice, choices.length === 1 ? body : undefined));
  if (prompt === undefined || samples.length === 0) return {};
  const whole = samples.flatMap((each) => (each === undefined || each.ids.length === 0 ? [] : [each]));
  return whole.length === samples.length ? { tokens: { prompt, samples: whole } } : {};
}

/** The prompt of all choices. Undefined if the choices come from several prompts. */
function sharedPrompt(choices: readonly unknown[]): number[] | undefined {
  const [first, ...others] = choices.map(promptIds);
  const isSame = (other: number[] | undefined) =>
    other?.length === first?.length && other?.every((id, i) => id === first![i]) === true;
  return first !== undefined && others.every(isSame) ? first : undefined;
}

function promptIds(value: unknown): number[] | undefined {
  const meta = objectAt(value, "meta_info");
  return (
    tokenIdsAt(value, "prompt_token_ids") ??
    tokenIdsAt(meta, "prompt_token_ids") ??
    tokenIdsAt(meta, "input_token_ids") ??
    idsOf(listAt(meta, "input_token_logprobs"))
  );
}

function sampleOf(choice: unknown, body: JsonObject | undefined) {
  const meta = objectAt(choice, "meta_info") ?? objectAt(body, "meta_info");
  const fromMeta = pairs(listAt(meta, "output_token_logprobs"));
  if (fromMeta !== undefined) return fromMeta;
  const ids = tokenIdsAt(choice, "token_ids") ?? tokenIdsAt(choice, "response_token_ids");
  const logprobs = logprobsOf(objectAt(choice, "logprobs"));
  if (ids === undefined || logprobs === undefined || ids.length !== logprobs.length) return undefined;
  return { ids, logprobs };
}

/** Logprobs of a chat are in `content[].logprob`, those of completions in `token_logprobs[]`. */
function logprobsOf(logprobs: JsonObject | undefined): number[] | undefined {
  const content = listAt(logprobs, "content");
  const values = content?.map((each) => (isObject(each) ? each.logprob : undefined));
  const all = values ?? listAt(logprobs, "token_logprobs");
  return all?.every(isLogprob) ? (all as number[]) : undefined;
}

function pairs(entries: unknown[] | undefined): { ids: number[]; logprobs: number[] } | undefined {
  const ids = idsOf(entries);
  const logprobs = entries?.map((entry) => (entry as unknown[])[0]);
  return ids !== undefined && logprobs!.every(isLogprob)
    ? { ids, logprobs: logprobs as number[] }
    : undefined;
}

/** True if a token stream accepts the value: a finite float, and no probability above 1. */
function isLogprob(value: unknown): boolean {
  return (
    typeof value === "number" &&
    Number.isFinite(Math.fround(value)) &&
    Math.fround(value) <= LOGPROB_TOLERANCE
  );
}

/** The ids of entries [logprob, id, text]. The first prompt token has no logprob, and none is needed. */
function idsOf(entries: unknown[] | undefined): number[] | undefined {
  const ids = entries?.map((entry) => (Array.isArray(entry) ? (entry[1] as unknown) : undefined));
  return ids?.every((id) => typeof id === "number" && id >>> 0 === id) ? (ids as number[]) : undefined;
}
