import { readdirSync, readFileSync } from "node:fs";
import OpenAI from "openai";
import { describe, expect, it } from "vitest";
import { digestJson } from "../../src/base/digest.ts";
import { TestGateway } from "../support/gateway.ts";
import { json, stream } from "../support/scripted-upstream.ts";

/** A reply of one kind of server. `source` names the reference it was written from. */
interface Fixture {
  readonly source: string;
  readonly capture: "vllm" | "sglang" | null;
  readonly path: "/v1/chat/completions" | "/v1/completions";
  readonly stream?: true;
  /** Fields that the capture adds to the request. `unasked` lists fields that it must not add. */
  readonly asked: Record<string, unknown>;
  readonly unasked?: string[];
  readonly reply?: unknown;
  readonly events?: unknown[];
  readonly text: string;
  readonly tokens: { prompt: number[]; ids: number[]; logprobs: number[] } | null;
}

const FOLDER = "test/fixtures/dialects";
const fixtures = readdirSync(FOLDER).map((file): [string, Fixture] => [
  file.replace(/\.json$/, ""),
  JSON.parse(readFileSync(`${FOLDER}/${file}`, "utf8")),
]);

async function open({ capture, events, reply }: Fixture) {
  const tokens = capture === null ? {} : { capture: { tokens: capture }, logprobKind: "sampling" };
  const test = await TestGateway.open({
    models: {
      m: { upstream: "main", family: "m", revision: { id: "m-1", digest: digestJson("t", "w") }, ...tokens },
    },
  });
  test.upstream.play(
    events === undefined ? json(reply) : stream([...events.map((data) => ({ data })), { data: "[DONE]" }]),
  );
  const rollout = await test.openRollout();
  const client = new OpenAI({ apiKey: rollout.apiKey, baseURL: `${test.gateway.url}/v1`, maxRetries: 0 });
  return { test, rollout, client };
}

/** Asks with the unmodified client; returns the text that the client received. */
async function ask(client: OpenAI, fixture: Fixture): Promise<string> {
  const messages = [{ role: "user" as const, content: "Hello" }];
  let text = "";
  if (fixture.path === "/v1/completions") {
    if (fixture.stream !== true)
      return (await client.completions.create({ model: "m", prompt: "Hello", temperature: 1 })).choices[0]!
        .text;
    for await (const chunk of await client.completions.create({ model: "m", prompt: "Hello", stream: true }))
      text += chunk.choices[0]?.text ?? "";
    return text;
  }
  if (fixture.stream !== true)
    return (await client.chat.completions.create({ model: "m", messages })).choices[0]!.message.content!;
  for await (const chunk of await client.chat.completions.create({ model: "m", messages, stream: true }))
    text += chunk.choices[0]?.delta.content ?? "";
  return text;
}

describe("what servers reply, by the openai package", () => {
  it.each(fixtures)(
    "%s: the text passes, ids and logprobs are recorded where they are given",
    async (_name, fixture) => {
      const { test, rollout, client } = await open(fixture);
      expect(await ask(client, fixture)).toBe(fixture.text);
      const sent = JSON.parse(test.upstream.asked[0]!.body);
      expect(sent).toMatchObject(fixture.asked);
      for (const field of fixture.unasked ?? []) expect(sent).not.toHaveProperty(field);
      const artifact = await test.closed(rollout.id);
      const [call] = artifact.calls;
      expect(call.dialect).toBe(fixture.path === "/v1/completions" ? "openai-completions" : "openai-chat");
      expect(call.response.messages[0].content).toBe(fixture.text);
      const streams = artifact.streams.filter(({ level }: { level: string }) => level === "token");
      const { tokens } = fixture;
      expect(streams).toMatchObject(
        tokens === null
          ? []
          : [
              {
                ids: [...tokens.prompt, ...tokens.ids],
                logprobs: [...tokens.prompt.map(() => 0), ...tokens.logprobs],
                mask: [...tokens.prompt.map(() => 0), ...tokens.ids.map(() => 1)],
              },
            ],
      );
      expect(fixture.source).not.toBe("");
      expect((await test.verify()).problems).toEqual([]);
    },
  );

  it.each([
    [{ dialect: "openai" }, 400],
    [{ dialect: "both" }, 200],
    [{}, 200],
  ])(
    "of upstreams with %j: a call in the words of Anthropic's is answered with %d",
    async (upstream, status) => {
      const test = await TestGateway.open({ upstreams: { main: upstream }, routes: { auto: ["tiny"] } });
      test.upstream.otherwise = json({});
      for (const model of ["auto", "tiny", "of-the-default-upstream"]) {
        const messages = [{ role: "user", content: "Hi" }];
        const reply = await test.post("/v1/messages", { model, max_tokens: 9, messages });
        expect(reply.status).toBe(status);
        if (status === 400) {
          const says = `the upstream of ${model} speaks OpenAI's dialect`;
          expect(reply.body.error.message).toContain(says);
          expect(reply.headers.get("x-rollbook-refusal")).toBe("wrong-dialect");
        }
        expect((await test.post("/v1/chat/completions", { model, messages })).status).toBe(200);
      }
      expect(test.upstream.asked).toHaveLength(status === 400 ? 3 : 6);
    },
  );

  it("completions keep prompt, parameters, usage, finish reason and an error that passed through", async () => {
    const fixture = fixtures.find(([name]) => name === "openai-completions")![1];
    const { test, rollout, client } = await open(fixture);
    test.upstream.play(json({ error: { message: "too long", type: "invalid_request_error" } }, 400));
    await client.completions.create({ model: "m", prompt: [1, 2, 3], max_tokens: 5, logprobs: 2 });
    await expect(client.completions.create({ model: "m", prompt: ["a", "b"] })).rejects.toThrow("too long");
    const { calls } = await test.closed(rollout.id);
    expect(calls).toMatchObject([
      {
        request: {
          messages: [{ role: "prompt", content: [1, 2, 3] }],
          parameters: { max_tokens: 5, logprobs: 2 },
        },
        response: { finishReason: "stop", status: 200 },
        usage: { promptTokens: 3, completionTokens: 2 },
      },
      { request: { messages: [{ content: "a" }, { content: "b" }] }, response: { status: 400 } },
    ]);
  });
});
