/** The requirements of every token format: sampling log-probabilities, one tokenizer, a response. In: rows in order.
 *  Pure, except that it remembers the tokenizer. */
import { RollbookError } from "../../base/index.ts";
import { refuse } from "../../contract/index.ts";
import type { HandedRollout, HandedTokens } from "./handed-rollout.ts";

interface SplitTokens {
  /** Start of the response: the first sampled token. */
  readonly at: number;
  readonly promptIds: number[];
  readonly responseIds: number[];
  readonly responseMask: number[];
  /** 0 at positions with mask 0. */
  readonly responseLogprobs: number[];
}

export class TokenRules {
  #tokenizer: string | undefined;
  #first: string | undefined;

  /** Returns the checked tokens of a row. A refusal names the row and the remedy. */
  require(rollout: HandedRollout): HandedTokens {
    const { tokens, record } = rollout;
    const row = record.rolloutId;
    if (tokens === null)
      throw new RollbookError(
        "no-logprobs",
        { row },
        `rollout ${row} has no token stream, so there are no log-probabilities to hand over. Record token ids at collection (a vLLM or SGLang upstream), or choose a format of conversations such as trl-sft.`,
      );
    if (tokens.logprobKind !== "sampling")
      throw refuse(
        "wrong-logprob-kind",
        { row, needed: "sampling", actual: tokens.logprobKind },
        `rollout ${row} has ${tokens.logprobKind} log-probabilities; importance ratios need those of the distribution that was sampled. Cut the batch with --logprob-kind sampling.`,
      );
    const tokenizer = tokens.tokenizer ?? "unknown";
    if (this.#first === undefined) [this.#tokenizer, this.#first] = [tokenizer, row];
    if (tokenizer !== this.#tokenizer)
      throw new RollbookError(
        "mixed-tokenizers",
        { row, expected: this.#tokenizer, actual: tokenizer },
        `rollout ${row} has tokens of tokenizer ${tokenizer}, rollout ${this.#first} of ${this.#tokenizer}. Ids of two tokenizers do not mix: assemble a batch for each with \`rollbook batch assemble --tokenizer\`.`,
      );
    return tokens;
  }
}

export function splitTokens({ ids, mask, logprobs }: HandedTokens): SplitTokens {
  const first = mask.indexOf(1);
  const at = first < 0 ? ids.length : first;
  return {
    at,
    promptIds: Array.from(ids.subarray(0, at)),
    responseIds: Array.from(ids.subarray(at)),
    responseMask: Array.from(mask.subarray(at)),
    responseLogprobs: Array.from(logprobs.subarray(at), (each, i) => (mask[at + i] === 1 ? each : 0)),
  };
}
