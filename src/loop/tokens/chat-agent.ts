/** Implements the built-in agent of a token window: one chat call, scored against the label of the task.
 *  In: a payload with `question`. Out: the reply as final state; reward 1 if it equals the label. It runs in process,
 *  because it runs no other code. It calls the gateway of its window without a connection. */
import { type Digest, digestJson, reasonOf } from "../../base/index.ts";
import type { OpenGateway } from "../../book/collect/index.ts";
import {
  type Agent,
  compositeReward,
  failedBy,
  functionAgent,
  type Payload,
  type RolloutContext,
  verificationTerm,
} from "../../collect/rollout/index.ts";

interface ChatSampling {
  readonly maxTokens: number;
  readonly temperature: number;
}

type Desk = Pick<OpenGateway["desk"], "call">;

/** Makes an agent for each gateway; all have one digest. */
export interface DeskAgent {
  readonly digest: Digest;
  at(desk: Desk): Agent;
}

export function tokenChatAgent({ maxTokens, temperature }: ChatSampling): DeskAgent {
  const scorer = compositeReward({
    name: "exact-match",
    terms: [verificationTerm(({ finalState, task }) => finalState === task.label)],
  });
  const digest = digestJson("rollbook.chat-agent.v1", { maxTokens, temperature, scorer: scorer.digest });
  const runAt = (desk: Desk) => async (payload: Payload, context: RolloutContext) => {
    const { rolloutConfig, seed } = context;
    const question = {
      ...{ model: rolloutConfig.model_id, messages: [{ role: "user", content: String(payload.question) }] },
      // A double holds integers of 53 bits exactly.
      ...{ max_tokens: maxTokens, temperature, seed: Number(BigInt.asUintN(53, seed)) },
    };
    return { finalState: await ask(desk, question, context) };
  };
  const at = (desk: Desk) =>
    functionAgent({ rollbook: "rollout-definition.v1", run: runAt(desk), scorer }, { name: "chat", digest });
  return { digest, at };
}

async function ask(desk: Desk, question: object, { apiKey = "", signal }: RolloutContext): Promise<string> {
  const call = { path: "/v1/chat/completions", apiKey, body: JSON.stringify(question), signal };
  const { status, body } = await desk.call(call).catch((cause: unknown) => {
    if (signal.aborted) throw cause;
    throw failedBy("provider", `the gateway did not answer: ${reasonOf(cause)}`, { cause });
  });
  const text = body.toString();
  if (status !== 200) throw failedBy("provider", `the model answered ${status}: ${text.slice(0, 200)}`);
  const { choices } = JSON.parse(text) as { choices: { message: { content: string } }[] };
  return choices[0]!.message.content;
}
