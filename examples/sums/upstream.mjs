/** A model server that needs no key: speaks OpenAI chat completions and adds the numbers in the last message.
 *  Where a tool is offered it calls the first one with these numbers, and answers with the tool's result.
 *  With "stream": true it answers in server-sent events.
 *  `node upstream.mjs [port] [host]`. Every model name answers; one that ends in "-careless" is off by one now and then. */
import { realpathSync } from "node:fs";
import { createServer } from "node:http";
import { pathToFileURL } from "node:url";

/** Resolves with the base URL and a way to stop. `script` may answer instead, or wait: (request) => text or undefined. */
export function startUpstream({ port = 0, host = "127.0.0.1", script = () => undefined } = {}) {
  let asked = 0;
  const server = createServer(async (request, response) => {
    let text = "";
    for await (const chunk of request) text += chunk;
    if (request.method !== "POST" || !request.url.endsWith("/chat/completions")) {
      const message = `${request.method} ${request.url} is not here, only POST /v1/chat/completions`;
      response.writeHead(404, { "content-type": "application/json" });
      return response.end(JSON.stringify({ error: { message, type: "invalid_request_error" } }));
    }
    const body = JSON.parse(text || "{}");
    const scripted = await script(body);
    const message =
      scripted === undefined && callsTool(body) ? toolCall(body) : said(scripted ?? answer(body, ++asked));
    const whole = reply(body.model, message);
    response.setHeader("content-type", body.stream ? "text/event-stream" : "application/json");
    response.end(body.stream ? streamed(whole, body.stream_options) : JSON.stringify(whole));
  });
  return new Promise((resolve) => {
    server.listen(port, host, () => {
      const url = `http://${host}:${server.address().port}/v1`;
      resolve({ url, close: () => new Promise((done) => server.close(done).closeAllConnections()) });
    });
  });
}

function answer({ model, messages }, asked) {
  const sum = numbersIn(messages).reduce((total, each) => total + each, 0);
  return String(String(model).endsWith("-careless") && asked % 3 === 0 ? sum + 1 : sum);
}

function numbersIn(messages) {
  const last = messages.at(-1).content;
  const question = typeof last === "string" ? last : last.map((part) => part.text ?? "").join(" ");
  return (question.match(/\d+/g) ?? []).map(Number);
}

function callsTool({ tools = [], messages }) {
  return tools.length > 0 && messages.at(-1).role !== "tool";
}

function said(content) {
  return { role: "assistant", content };
}

function toolCall({ messages, tools: [tool] }) {
  const called = { name: tool.function.name, arguments: JSON.stringify({ numbers: numbersIn(messages) }) };
  return {
    role: "assistant",
    content: null,
    tool_calls: [{ id: "call-1", type: "function", function: called }],
  };
}

function reply(model, message) {
  const finish_reason = message.tool_calls === undefined ? "stop" : "tool_calls";
  return {
    ...{ id: "chatcmpl-local", object: "chat.completion", created: 0, model },
    choices: [{ index: 0, message, finish_reason }],
    usage: { prompt_tokens: 12, completion_tokens: 2, total_tokens: 14 },
  };
}

/** The reply in chunks, one event each. The usage comes last, and only where `include_usage` asks for it. */
function streamed({ usage, choices: [{ message, finish_reason }], ...rest }, { include_usage = false } = {}) {
  const { role, content, tool_calls: calls } = message;
  const deltas =
    calls === undefined
      ? [{ role, content: "" }, { content }]
      : [
          { role, content, tool_calls: calls.map((call, index) => startOf(call, index)) },
          ...calls.map((call, index) => ({ tool_calls: [argumentsOf(call, index)] })),
        ];
  const choices = [
    ...deltas.map((delta) => ({ index: 0, delta, finish_reason: null })),
    { index: 0, delta: {}, finish_reason },
  ];
  const head = { ...rest, object: "chat.completion.chunk" };
  const chunks = choices.map((choice) => ({
    ...{ ...head, choices: [choice] },
    ...(include_usage ? { usage: null } : {}),
  }));
  if (include_usage) chunks.push({ ...head, choices: [], usage });
  return [...chunks.map((chunk) => JSON.stringify(chunk)), "[DONE]"]
    .map((data) => `data: ${data}\n\n`)
    .join("");
}

function startOf({ id, type, function: { name } }, index) {
  return { index, id, type, function: { name, arguments: "" } };
}

function argumentsOf({ function: { arguments: text } }, index) {
  return { index, function: { arguments: text } };
}

// Started as a program, not imported; by its real path, because the one given may be a link.
if (process.argv[1] && import.meta.url === pathToFileURL(realpathSync(process.argv[1])).href) {
  const { url } = await startUpstream({ port: Number(process.argv[2] ?? 8791), host: process.argv[3] });
  console.log(url);
}
