import OpenAI from "openai";
import { describe, expect, it, onTestFinished } from "vitest";
import { handTasks } from "../../../../test/support/sim-tasks.ts";
import { rngFrom } from "../../../base/index.ts";
import { CAPS } from "../../gateway-replies.ts";
import type { RolloutContext, RolloutOutput } from "../../rollout/agent/agent.ts";
import { cutBy } from "../../rollout/agent/failure.ts";
import { proofGrader } from "../prove/graders.ts";
import { serveOnLoopback } from "../serve/loopback.ts";
import { simulatedModels } from "../serve/model-server.ts";
import { TOOLS } from "../tasks/actions.ts";
import { openingMessages } from "../tasks/prompt.ts";
import { DEFAULT_MODELS } from "../world/models.ts";
import type { SimFinalState } from "../world/reward.ts";
import { promptTokensOf, tokensOfMessage } from "../world/simulated-model.ts";
import { chatAgent } from "./chat-agent.ts";

const proved = handTasks(4);
const tasks = proved.map(({ task }) => task);
const grader = proofGrader(proved);

async function play(
  handle: (request: Request) => Promise<Response>,
  options: { task?: number; config?: Record<string, unknown>; maxTurns?: number; signal?: AbortSignal } = {},
): Promise<RolloutOutput & { state: SimFinalState }> {
  const served = await serveOnLoopback(handle);
  onTestFinished(() => served.close());
  let turns = 0;
  const context = {
    ...{ rolloutId: "r", sample: 0, attempt: 1, seed: 11n, rng: rngFrom(1n), baseUrl: served.url },
    signal: options.signal ?? new AbortController().signal,
    rolloutConfig: { exp_id: "e", input_id: "t", model_id: "sim-large", ...options.config },
    nextTurn() {
      if (turns >= (options.maxTurns ?? 12)) throw cutBy("turns");
      return ++turns;
    },
    log() {},
  } as RolloutContext;
  const visible = tasks[options.task ?? 0]!.visible;
  const output = (await chatAgent(grader.runTests)(visible as never, context)) as RolloutOutput;
  return { ...output, state: output.finalState as unknown as SimFinalState };
}

describe("the chat agent", () => {
  it("hands in the same solutions by tools and in plain text, at other prices", async () => {
    const models = simulatedModels(tasks, DEFAULT_MODELS);
    for (const task of [0, 1, 2]) {
      const byTools = await play(models, { task });
      const inText = await play(models, { task, config: { text_protocol: true } });
      expect(byTools.ending).toEqual({ kind: "terminal" });
      expect(inText.state.files).toEqual(byTools.state.files);
      expect(inText.state.calls!.length).toBe(byTools.state.calls!.length);
    }
  });

  it("goes over to plain text where a model refuses tools", async () => {
    const models = simulatedModels(tasks, DEFAULT_MODELS);
    let refused = 0;
    const output = await play(async (request) => {
      const body = await request.text();
      if (body.includes('"tools"')) {
        refused++;
        return new Response('{"error":{"message":"tools are not supported"}}', { status: 400 });
      }
      return models(new Request(request.url, { method: "POST", body }));
    });
    expect([refused, Object.keys(output.state.files)]).toEqual([1, ["solution.mjs"]]);
  });

  it.each(Object.entries(CAPS))("is truncated by the %s of a gateway", async (code, { status, limit }) => {
    const refuse = async () => Response.json({ error: { code } }, { status });
    expect((await play(refuse)).ending).toEqual({ kind: "truncated", limit });
  });

  it("keeps what is written when turns run out, and when it is told to stop", async () => {
    const models = simulatedModels(tasks, DEFAULT_MODELS);
    const cut = await play(models, { maxTurns: 1 });
    expect(cut.ending).toEqual({ kind: "truncated", limit: "turns" });
    expect(Object.keys(cut.state.files)).toEqual(["solution.mjs"]);
    const stop = new AbortController();
    let calls = 0;
    const stopped = await play(
      async (request) => {
        if (++calls === 2) stop.abort(cutBy("time"));
        return models(request);
      },
      { signal: stop.signal },
    );
    expect(stopped.ending).toMatchObject({ kind: "truncated" });
    expect(Object.keys(stopped.state.files)).toEqual(["solution.mjs"]);
  });

  it("reminds a model that only talks, then ends with what there is", async () => {
    let calls = 0;
    const output = await play(async () => {
      calls++;
      return Response.json({ choices: [{ message: { role: "assistant", content: "Hm." } }] });
    });
    expect([calls, output.state.files, output.ending]).toEqual([2, {}, { kind: "terminal" }]);
  });

  it.each([
    [503, "{}", "failed-provider"],
    [404, '{"error":{"code":"unknown_task"}}', "failed-task"],
    [404, '{"error":{"code":"model_not_found"}}', "failed-infrastructure"],
    [200, "no json", "failed-provider"],
  ])("blames by what the server answers: %i %s is %s", async (status, body, code) => {
    await expect(play(async () => new Response(body, { status }))).rejects.toMatchObject({ code });
  });
});

describe("simulated models over HTTP", () => {
  it("stream what they say at once, token for token, to a client that knows nothing of them", async () => {
    const served = await serveOnLoopback(simulatedModels(tasks, DEFAULT_MODELS));
    onTestFinished(() => served.close());
    const client = new OpenAI({ baseURL: served.url, apiKey: "none" });
    const messages = openingMessages(tasks[1]!.visible, "tools") as OpenAI.ChatCompletionMessageParam[];
    const request = {
      model: "sim-coder",
      messages,
      tools: [...TOOLS] as OpenAI.ChatCompletionTool[],
      seed: 5,
    };
    const whole = await client.chat.completions.create(request);
    const stream = client.chat.completions.stream({ ...request, stream_options: { include_usage: true } });
    const streamed = await stream.finalChatCompletion();
    const calls = (reply: OpenAI.ChatCompletion) =>
      reply.choices[0]!.message.tool_calls!.map((each) => each.type === "function" && each.function.name);
    expect(calls(whole)).toEqual(["read_file"]);
    expect(calls(streamed)).toEqual(calls(whole));
    expect(streamed.usage).toEqual(whole.usage);
    expect(whole.usage!.prompt_tokens).toBe(promptTokensOf(messages as never));
    expect(whole.usage!.completion_tokens).toBe(tokensOfMessage(whole.choices[0]!.message as never));
    expect((await client.models.list()).data.map(({ id }) => id)).toContain("sim-small");
  });

  it("answer by seed, whatever was asked in between, and know a task also in other words", async () => {
    const models = simulatedModels(tasks, DEFAULT_MODELS);
    const ask = async (seed: number, user: string) => {
      const body = { model: "sim-small", seed, tools: TOOLS, messages: [{ role: "user", content: user }] };
      const request = new Request("http://local/v1/chat/completions", {
        method: "POST",
        body: JSON.stringify(body),
      });
      return (await models(request)).json() as Promise<{ choices: { message: unknown }[]; error?: unknown }>;
    };
    const plain = tasks[2]!.visible.statement;
    const first = await Promise.all([1, 2, 3, 4, 5, 6].map((seed) => ask(seed, plain)));
    const again = await Promise.all([6, 5, 4, 3, 2, 1].map((seed) => ask(seed, plain)));
    expect(again.reverse()).toEqual(first);
    expect(await ask(1, `Please: ${plain} Thank you.`)).toMatchObject({ choices: first[0]!.choices });
    expect(await ask(1, "Write a poem.")).toMatchObject({ error: { code: "unknown_task" } });
  });
});
