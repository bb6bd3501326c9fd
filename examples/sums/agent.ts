/** An agent with the Vercel AI SDK. All it changes for Rollbook are base URL and key; in your own project,
 *  `defineRollout` of `rollbook/rollout` gives the two arguments their types. */
import { createOpenAI } from "@ai-sdk/openai";
import { generateText } from "ai";

interface Context {
  readonly baseUrl?: string;
  readonly apiKey?: string;
  readonly signal: AbortSignal;
  readonly rolloutConfig: { readonly model_id?: string };
}

export default async function solve(task: { question: string; answer: number }, context: Context) {
  const openai = createOpenAI({ baseURL: context.baseUrl!, apiKey: context.apiKey! });
  const { text } = await generateText({
    model: openai.chat(context.rolloutConfig.model_id ?? "tiny"),
    messages: [
      { role: "system", content: "Answer with one number." },
      { role: "user", content: task.question },
    ],
    abortSignal: context.signal,
    maxRetries: 0,
  });
  return { reward: Number(text) === task.answer ? 1 : 0, metrics: { length: text.length } };
}
