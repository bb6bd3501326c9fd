/** Two simulated models behind one server that speaks OpenAI chat completions. It needs no key and no network.
 *  It streams where a request asks for it.
 *  `node model.mjs [port]`. sim-small adds well and fails at problems with two steps; sim-large solves both. */
import { createServer } from "node:http";

const server = createServer(async (request, response) => {
  let body = "";
  for await (const chunk of request) body += chunk;
  if (request.method !== "POST" || !request.url.endsWith("/chat/completions"))
    return refuse(
      response,
      404,
      `${request.method} ${request.url} is not here, only POST /v1/chat/completions`,
    );
  try {
    const { model, messages, stream, stream_options } = JSON.parse(body);
    const whole = reply(model, String(solve(model, messages.at(-1).content)));
    response.setHeader("content-type", stream ? "text/event-stream" : "application/json");
    response.end(stream ? streamed(whole, stream_options) : JSON.stringify(whole));
  } catch (error) {
    refuse(response, 400, `not a chat request with a text as its last message: ${error.message}`);
  }
});

const port = Number(process.argv[2] ?? 8791);
server.on("error", ({ code, message }) => {
  const used = `port ${port} is in use. Stop the program that uses it, or name another port here and in gateway.yaml`;
  console.error(code === "EADDRINUSE" ? `error: ${used}: node model.mjs PORT` : `error: ${message}`);
  process.exit(1);
});
server.listen(port, "127.0.0.1", () => {
  console.log(`simulated models at http://127.0.0.1:${server.address().port}/v1`);
});

function refuse(response, status, message) {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify({ error: { message, type: "invalid_request_error" } }));
}

function solve(model, question) {
  const numbers = (question.match(/\d+/g) ?? []).map(Number);
  const [first, second, third = 0] = numbers;
  if (numbers.length < 3) return first + second;
  return model === "sim-small" ? first + second - third : first * second - third;
}

function reply(model, content) {
  return {
    ...{ id: "chatcmpl-simulated", object: "chat.completion", created: 0, model },
    choices: [{ index: 0, message: { role: "assistant", content }, finish_reason: "stop" }],
    usage: { prompt_tokens: 40, completion_tokens: 5, total_tokens: 45 },
  };
}

/** The reply in chunks, one event each. The usage comes last, and only where `include_usage` asks for it. */
function streamed({ usage, choices: [{ message, finish_reason }], ...rest }, { include_usage = false } = {}) {
  const head = { ...rest, object: "chat.completion.chunk", ...(include_usage ? { usage: null } : {}) };
  const chunks = [
    { ...head, choices: [{ index: 0, delta: message, finish_reason: null }] },
    { ...head, choices: [{ index: 0, delta: {}, finish_reason }] },
    ...(include_usage ? [{ ...head, choices: [], usage }] : []),
  ];
  return [...chunks.map((chunk) => JSON.stringify(chunk)), "[DONE]"]
    .map((data) => `data: ${data}\n\n`)
    .join("");
}
