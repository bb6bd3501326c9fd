/** Simulates a model in this process: it speaks OpenAI chat completions over HTTP and adds two numbers. The sum is too
 *  large by 1 if one of them is 7.
 *  In: nothing. Out: its URL. The same question always gets the same answer. */
import { type ServedUpstream, serveOnLoopback } from "../../collect/sim/index.ts";

export function openSimulatedUpstream(): Promise<ServedUpstream> {
  return serveOnLoopback(async (request) => {
    const { model, messages } = (await request.json()) as { model: string; messages: { content: string }[] };
    return Response.json(replyTo(model, messages.at(-1)!.content));
  });
}

function replyTo(model: string, question: string): object {
  const numbers = (question.match(/\d+/g) ?? []).map(Number);
  const sum = numbers.reduce((total, each) => total + each, 0);
  const content = String(numbers.includes(7) ? sum + 1 : sum);
  return {
    ...{ id: "chatcmpl-simulated", object: "chat.completion", created: 0, model },
    choices: [{ index: 0, message: { role: "assistant", content }, finish_reason: "stop" }],
    usage: { prompt_tokens: question.length, completion_tokens: content.length },
  };
}
