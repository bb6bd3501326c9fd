/** The built-in agent of a token window: one chat call, scored against the label of the task.
 *  In: a payload with `question`. Out: the reply as final state; reward 1 where it equals the label. In process, because
 *  it runs no other code. */
import { request, Agent as UndiciAgent } from "undici";
import { digestJson, reasonOf } from "../../base/index.ts";
import {
  type Agent,
  compositeReward,
  failedBy,
  functionAgent,
  type RolloutContext,
  verificationTerm,
} from "../../collect/rollout/index.ts";

interface ChatSampling {
  readonly maxTokens: number;
  readonly temperature: number;
}

export function chatAgent({ maxTokens, temperature }: ChatSampling): Agent {
  const scorer = compositeReward({
    name: "exact-match",
    terms: [verificationTerm(({ finalState, task }) => finalState === task.label)],
  });
  const digest = digestJson("rollbook.chat-agent.v1", { maxTokens, temperature, scorer: scorer.digest });
  const run = async (payload: Readonly<Record<string, unknown>>, context: RolloutContext) => ({
    finalState: await ask(String(payload.question), { maxTokens, temperature }, context),
  });
  return functionAgent({ rollbook: "rollout-definition.v1", run, scorer }, { name: "chat", digest });
}

async function ask(
  question: string,
  { maxTokens, temperature }: ChatSampling,
  { baseUrl, apiKey, rolloutConfig, seed, signal }: RolloutContext,
): Promise<string> {
  const { status, text } = await post(`${baseUrl}/chat/completions`, {
    ...{ apiKey: apiKey ?? "", signal },
    body: JSON.stringify({
      ...{ model: rolloutConfig.model_id, messages: [{ role: "user", content: question }] },
      // A double holds 53 bits of it exactly.
      ...{ max_tokens: maxTokens, temperature, seed: Number(BigInt.asUintN(53, seed)) },
    }),
  });
  if (status !== 200) throw failedBy("provider", `the model answered ${status}: ${text.slice(0, 200)}`);
  const { choices } = JSON.parse(text) as { choices: { message: { content: string } }[] };
  return choices[0]!.message.content;
}

/** Connections are kept: thousands of calls go to one gateway. A rollout has limits of its own. */
const dispatcher = new UndiciAgent({ headersTimeout: 0, bodyTimeout: 0, connect: { timeout: 0 } });

/** undici's request: a fetch costs three times as much, node:http a third more, and these calls are most of what a window
 *  does. */
async function post(
  url: string,
  { apiKey, body, signal }: { apiKey: string; body: string; signal: AbortSignal },
): Promise<{ status: number; text: string }> {
  const headers = { "content-type": "application/json", authorization: `Bearer ${apiKey}` };
  try {
    const { statusCode, body: reply } = await request(url, {
      ...{ method: "POST", dispatcher, headers, body, signal },
    });
    return { status: statusCode, text: await reply.text() };
  } catch (cause) {
    if (signal.aborted) throw cause;
    throw failedBy("provider", `the gateway did not answer: ${reasonOf(cause)}`, { cause });
  }
}
