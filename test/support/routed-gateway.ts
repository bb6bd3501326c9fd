/** A gateway with a `router:` section and models in this process, on its own book, for one test. */
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import OpenAI from "openai";
import { expect, onTestFinished } from "vitest";
import { openGateway } from "../../src/book/collect/index.ts";
import { openBook } from "../../src/book/open/index.ts";
import type { LocalUpstream } from "../../src/collect/gateway/index.ts";
import { RolloutContent } from "../../src/contract/index.ts";
import { readRecord } from "../../src/store/index.ts";
import { sharedThread } from "./shared-thread.ts";

/** Answers with the name of the model; `broken` always fails. */
export const echoModels: LocalUpstream = async (request) => {
  const { model } = (await request.json()) as { model: string };
  if (model === "broken") return Response.json({ error: { message: "overloaded" } }, { status: 503 });
  return Response.json({
    ...{ id: "c", object: "chat.completion", created: 1, model },
    choices: [{ index: 0, message: { role: "assistant", content: model }, finish_reason: "stop" }],
    usage: { prompt_tokens: 10, completion_tokens: 1, total_tokens: 11 },
  });
};

interface RoutedGateway {
  readonly names?: readonly string[];
  readonly env?: Record<string, string>;
  /** The book of an earlier gateway, to continue with. */
  readonly root?: string;
  readonly models?: LocalUpstream;
  readonly newId?: () => string;
  /** Further fields of the gateway's configuration. */
  readonly config?: object;
}

export async function routedGateway(router: object, options: RoutedGateway = {}) {
  const { names = ["small", "large"], env = {}, models = echoModels, newId, config = {} } = options;
  const { root = mkdtempSync(join(tmpdir(), "rollbook-router-")) } = options;
  const gateway = await openGateway({
    ...{ book: root, env, newId, local: { models }, keptThread: sharedThread },
    config: {
      listen: { port: 0 },
      upstreams: { models: { baseUrl: "local:models", retries: 0 } },
      models: Object.fromEntries(
        names.map((name, i) => [name, { upstream: "models", price: { prompt: 1 + i, completion: 4 } }]),
      ),
      router,
      ...config,
    },
  });
  let isOpen = true;
  const close = async () => {
    if (isOpen) await gateway.close();
    isOpen = false;
  };
  onTestFinished(close);
  const post = async (path: string, body: object, headers: Record<string, string> = {}) => {
    const response = await fetch(gateway.url + path, {
      ...{ method: "POST", body: JSON.stringify(body) },
      headers: { "content-type": "application/json", ...headers },
    });
    // biome-ignore lint/suspicious/noExplicitAny: replies of every shape
    return { status: response.status, body: (await response.json()) as any };
  };
  /** Plays one rollout of one call; returns the reply's text. */
  const ask = async (id: string, content = "hello"): Promise<string> => {
    const opened = await post("/v1/rollouts", { id, task: { id } });
    expect(opened.status).toBe(201);
    const client = new OpenAI({
      ...{ baseURL: `${gateway.url}/v1`, apiKey: opened.body.apiKey, maxRetries: 0 },
    });
    const reply = await client.chat.completions.create({
      model: "auto",
      messages: [{ role: "user", content }],
    });
    expect((await post(`/v1/rollouts/${id}/close`, {})).status).toBe(200);
    return reply.choices[0]!.message.content!;
  };
  /** Opens the book as another process would. */
  const openAgain = async () => {
    const book = await openBook(root);
    onTestFinished(() => book.close());
    return book;
  };
  const steps = async () => {
    await close();
    const book = await openAgain();
    const index = await book.index();
    const contents = await Promise.all(
      [...index.ofKind(RolloutContent.kind)].map(({ digest }) =>
        readRecord(book.store, RolloutContent, digest),
      ),
    );
    return contents.flatMap(({ rolloutId: id, streams }) =>
      streams.flatMap((stream) =>
        stream.level === "step" ? stream.steps.map((step) => ({ id, ...step })) : [],
      ),
    );
  };
  return { root, gateway, close, post, ask, openAgain, steps };
}
