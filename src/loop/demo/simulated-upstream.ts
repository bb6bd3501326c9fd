/** A model that lives in this process: speaks OpenAI chat completions over HTTP and adds two numbers, except where
 *  one of them is 7. In: nothing. Out: its URL. The same question gets the same answer, whoever asks and when. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

export interface SimulatedUpstream {
  readonly url: string;
  close(): Promise<void>;
}

export async function openSimulatedUpstream(): Promise<SimulatedUpstream> {
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const { model, messages } = JSON.parse(Buffer.concat(chunks).toString()) as {
      model: string;
      messages: { content: string }[];
    };
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify(replyTo(model, messages.at(-1)!.content)));
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    close: () =>
      new Promise((done) => {
        server.close(() => done());
        server.closeAllConnections();
      }),
  };
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
