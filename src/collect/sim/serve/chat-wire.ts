/** The server side of OpenAI's chat completions: reads requests, writes replies, whole or streamed.
 *  In: HTTP requests, replies of a model. Out: HTTP responses. Knows no task and no model. */
import { parseJson } from "../../../base/index.ts";
import type { Message } from "../tasks/index.ts";

interface Chat {
  readonly model: string;
  readonly messages: readonly Message[];
  readonly hasTools: boolean;
  readonly seed: number;
  readonly stream: boolean;
  readonly includeUsage: boolean;
}

interface ChatReply {
  readonly message: Message;
  readonly promptTokens: number;
  readonly completionTokens: number;
}

/** Returns a Response if the request needs no model: a list of models, or a refusal. */
export async function readChat(request: Request, models: readonly string[]): Promise<Chat | Response> {
  const { pathname } = new URL(request.url);
  if (request.method === "GET" && pathname.endsWith("/models"))
    return json(200, { object: "list", data: models.map((id) => ({ id, object: "model", created: 0 })) });
  if (request.method !== "POST" || !pathname.endsWith("/chat/completions"))
    return refuse(
      404,
      "not_found",
      `there is nothing at ${request.method} ${pathname}; POST chat/completions.`,
    );
  let body: Record<string, unknown>;
  try {
    body = parseJson(await request.text(), "request") as Record<string, unknown>;
  } catch {
    return refuse(400, "bad_request", "the body is not JSON.");
  }
  if (typeof body?.model !== "string" || !Array.isArray(body.messages))
    return refuse(400, "bad_request", "the body has no model or no messages.");
  const options = body.stream_options as { include_usage?: unknown } | undefined;
  return {
    model: body.model,
    messages: body.messages.map(readMessage),
    hasTools: Array.isArray(body.tools) && body.tools.length > 0,
    seed: typeof body.seed === "number" ? body.seed : 0,
    stream: body.stream === true,
    includeUsage: options?.include_usage === true,
  };
}

export function chatCompletion(
  { model }: Chat,
  { message, promptTokens, completionTokens }: ChatReply,
): Response {
  return json(200, {
    ...{ id: "chatcmpl-sim", object: "chat.completion", created: 0, model },
    choices: [{ index: 0, message, finish_reason: finishOf(message) }],
    usage: usageOf(promptTokens, completionTokens),
  });
}

/** Streams like providers: a role, pieces of text and arguments, the finish reason, the usage if requested, [DONE]. */
export function chatStream(chat: Chat, { message, promptTokens, completionTokens }: ChatReply): Response {
  const head = { id: "chatcmpl-sim", object: "chat.completion.chunk", created: 0, model: chat.model };
  const choice = (delta: object, finish: string | null = null) => ({
    ...head,
    choices: [{ index: 0, delta, finish_reason: finish }],
  });
  const chunks: object[] = [choice({ role: "assistant", content: message.content === null ? null : "" })];
  for (const piece of piecesOf(message.content ?? "")) chunks.push(choice({ content: piece }));
  for (const [index, { id, type, function: f }] of (message.tool_calls ?? []).entries()) {
    chunks.push(choice({ tool_calls: [{ index, id, type, function: { name: f.name, arguments: "" } }] }));
    for (const piece of piecesOf(f.arguments))
      chunks.push(choice({ tool_calls: [{ index, function: { arguments: piece } }] }));
  }
  chunks.push(choice({}, finishOf(message)));
  if (chat.includeUsage)
    chunks.push({ ...head, choices: [], usage: usageOf(promptTokens, completionTokens) });
  const text = [...chunks.map((chunk) => JSON.stringify(chunk)), "[DONE]"];
  return new Response(
    new ReadableStream({
      start(controller) {
        for (const data of text) controller.enqueue(Buffer.from(`data: ${data}\n\n`));
        controller.close();
      },
    }),
    { status: 200, headers: { "content-type": "text/event-stream" } },
  );
}

export function refuse(status: number, code: string, message: string): Response {
  return json(status, { error: { message, type: "invalid_request_error", param: null, code } });
}

const PIECE_CHARS = 64;

function piecesOf(text: string): string[] {
  return Array.from({ length: Math.ceil(text.length / PIECE_CHARS) }, (_, i) =>
    text.slice(i * PIECE_CHARS, (i + 1) * PIECE_CHARS),
  );
}

function finishOf({ tool_calls }: Message): string {
  return tool_calls === undefined || tool_calls.length === 0 ? "stop" : "tool_calls";
}

function usageOf(prompt: number, completion: number) {
  return { prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion };
}

/** Content may come in parts. Only text parts are read. */
function readMessage(value: unknown): Message {
  const message = value as Message & { content?: unknown };
  const { content } = message as { content?: unknown };
  const parts = Array.isArray(content) ? (content as { text?: unknown }[]) : undefined;
  const text = parts?.map((part) => (typeof part?.text === "string" ? part.text : "")).join("\n");
  return { ...message, content: text ?? (typeof content === "string" ? content : null) };
}

function json(status: number, value: unknown): Response {
  return new Response(JSON.stringify(value), { status, headers: { "content-type": "application/json" } });
}
