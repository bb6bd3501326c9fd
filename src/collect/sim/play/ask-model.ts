/** One request of a rollout to a model server, and the owner of its failure. In: the rollout's context, a request.
 *  Out: the reply, its message and the usage. Knows no task and no protocol of actions. */
import { reasonOf } from "../../../base/index.ts";
import { isGatewayAway, isProviderFault, limitOfReply } from "../../gateway-replies.ts";
import { cutBy, failedBy, type RolloutContext } from "../../rollout/index.ts";
import type { Message } from "../tasks/index.ts";
import type { PaidCall } from "../world/index.ts";

/** 48 bits, because JSON numbers are exact only up to 2^53. */
const SEED_BITS = 48;

export interface Reply {
  readonly status: number;
  readonly text: string;
  /** The gateway's name of the model that served a routed call. */
  readonly routed: string | undefined;
  /** Reason why the gateway answered itself. */
  readonly refusal: string | undefined;
}

export interface ModelAnswer extends PaidCall {
  readonly message: Message;
}

/** The seed in a rollout's requests. */
export function requestSeed(seed: bigint): number {
  return Number(BigInt.asUintN(SEED_BITS, seed));
}

export async function postChat(
  { baseUrl, apiKey, rolloutConfig, seed, signal }: RolloutContext,
  request: {
    readonly model: string;
    readonly messages: readonly Message[];
    readonly tools?: readonly object[];
  },
): Promise<Reply> {
  if (baseUrl === undefined) throw failedBy("infrastructure", "no model server is named: give --gateway.");
  const response = await fetch(`${baseUrl}/chat/completions`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      ...(apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }),
    },
    body: JSON.stringify({ ...rolloutConfig.sampling_params, ...request, seed: requestSeed(seed) }),
    signal,
  }).catch((cause: unknown) => {
    if (signal.aborted) throw signal.reason;
    throw failedBy("infrastructure", `${baseUrl} cannot be reached: ${reasonOf(cause)}.`, { cause });
  });
  const header = (name: string) => response.headers.get(name) ?? undefined;
  return {
    ...{ status: response.status, text: await response.text() },
    ...{ routed: header("x-rollbook-model"), refusal: header("x-rollbook-refusal") },
  };
}

export function readAnswer(reply: Reply, asked: string): ModelAnswer {
  const { status, text, routed } = reply;
  if (status !== 200) throw refusalOf(reply);
  try {
    const body = JSON.parse(text) as {
      choices: { message: Message }[];
      usage?: { prompt_tokens?: number; completion_tokens?: number };
    };
    const { message } = body.choices[0]!;
    return {
      message: { ...message, role: "assistant", content: message.content ?? null },
      model: routed ?? asked,
      promptTokens: body.usage?.prompt_tokens ?? 0,
      completionTokens: body.usage?.completion_tokens ?? 0,
    };
  } catch (cause) {
    throw failedBy("provider", `the model's reply is not a chat completion: ${text.slice(0, 200)}`, {
      cause,
    });
  }
}

/** Caps of the gateway are limits, and an unknown task is the task's failure. Other errors are the provider's. */
function refusalOf({ status, text, refusal }: Reply): Error {
  const said = `the model server answered ${status}: ${text.slice(0, 300)}`;
  const limit = limitOfReply({ status, refusal, said: text });
  if (limit !== undefined) return cutBy(limit);
  if (status === 404 && /unknown_(task|prompt)/.test(text)) return failedBy("task", said);
  if (isProviderFault(status) && !isGatewayAway({ status, refusal })) return failedBy("provider", said);
  return failedBy("infrastructure", said);
}
