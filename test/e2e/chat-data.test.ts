import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { chatWire } from "../support/chat-rollouts.ts";
import { Cli, lines } from "../support/cli.ts";

// Bodies written by hand from the public references of both providers.
const OPENAI = {
  id: "log-1",
  session: "s-1",
  latency_ms: 1200,
  request: { model: "gpt-x", messages: [{ role: "user", content: "2 + 2" }], temperature: 0 },
  response: {
    ...{ id: "chatcmpl-1", object: "chat.completion", created: 1_700_000_000, model: "gpt-x-2024" },
    choices: [{ index: 0, message: { role: "assistant", content: "4" }, finish_reason: "stop" }],
    usage: { prompt_tokens: 9, completion_tokens: 1, total_tokens: 10 },
  },
};
const ANTHROPIC = {
  reward: 0.5,
  request: {
    model: "claude-x",
    system: "Be brief.",
    max_tokens: 9,
    messages: [{ role: "user", content: "Weather?" }],
  },
  response: {
    ...{ id: "msg_1", type: "message", role: "assistant", model: "claude-x", stop_reason: "tool_use" },
    content: [{ type: "tool_use", id: "t1", name: "look", input: { city: "Lyon" } }],
    usage: { input_tokens: 5, output_tokens: 7 },
  },
};
const BATCH = {
  custom_id: "b-1",
  request: { model: "gpt-x", messages: [{ role: "user", content: "hi" }] },
  response: { status_code: 429, body: { error: { message: "slow down" } } },
};

async function bookWith(...values: readonly unknown[]): Promise<Cli> {
  const cli = new Cli();
  await cli.ok("init");
  await cli.ok("artifact import - --no-sign", lines(...values));
  return cli;
}

describe("chat logs of OpenAI and Anthropic", () => {
  it("become rollouts of one call, and what they do not say is missing", async () => {
    const cli = await bookWith(OPENAI, ANTHROPIC, BATCH);
    const [first] = await cli.json("artifact show log-1");
    expect(first).toMatchObject({
      ...{ group: "s-1", dataSource: "real", scores: [], ending: { kind: "terminal" } },
      calls: [
        { dialect: "openai-chat", model: "gpt-x-2024", usage: { promptTokens: 9, completionTokens: 1 } },
      ],
      envelope: { startedAtMs: 1_700_000_000_000, endedAtMs: 1_700_000_001_200 },
    });
    expect(first.calls[0]).not.toHaveProperty("costUsd");
    expect(first.streams[0].steps[0]).toMatchObject({ reward: null, candidates: [{ probability: null }] });
    const [second] = await cli.json("artifact show msg_1");
    expect(second).toMatchObject({
      ...{
        ending: { kind: "truncated", limit: "turns" },
        scores: [{ value: 0.5 }],
        envelope: { startedAtMs: 0 },
      },
      calls: [
        { dialect: "anthropic-messages", request: { messages: [{ role: "system" }, { role: "user" }] } },
      ],
    });
    expect(second.envelope).not.toHaveProperty("callTimes");
    const [third] = await cli.json("artifact show b-1");
    expect(third.ending).toEqual({ kind: "failed", owner: "provider", message: "slow down" });
    expect(await cli.ok("verify")).toContain("3");
  });

  it("enter once, however often they are imported, and a line without a request is refused by its place", async () => {
    const cli = await bookWith(OPENAI);
    expect(await cli.ok("artifact import - --no-sign", lines(OPENAI, ANTHROPIC))).toContain(
      "1 imported, 1 already",
    );
    const { code, err } = await cli.run(
      "artifact import -",
      lines({ request: { model: "x" }, response: {} }),
    );
    expect([code, err]).toEqual([
      1,
      expect.stringContaining("<stdin>:1: the request has no model with messages"),
    ]);
    for (const [line, fault] of [
      [{ request: OPENAI.request }, "response is missing"],
      [{ response: OPENAI.response, id: "x" }, "request is missing"],
      [{ request: OPENAI.request, response: "ok" }, "response is not an object"],
    ])
      expect((await cli.run("artifact import -", lines(line))).err).toContain(
        `<stdin>:1: this looks like a line of a chat log, but ${fault}. A line needs both bodies`,
      );
  });
});

describe("data export", () => {
  const exported = async (cli: Cli, flags: string) => {
    const out = join(cli.folder, `${flags.replaceAll(/\W+/g, "-")}.jsonl`);
    const report = await cli.run(`data export ${flags} --out ${out}`);
    expect(report.err).not.toContain("error");
    const text = readFileSync(out, "utf8");
    return {
      report,
      rows: text
        .split("\n")
        .filter(Boolean)
        .map((line) => JSON.parse(line)),
    };
  };
  const scored = (name: string, value: number, over: object = {}) =>
    chatWire(name, { scores: [{ name: "solved", value, weight: 1 }], ...over });

  it("writes whole conversations in OpenAI's chat form, with tool calls, once each", async () => {
    const failed = { ending: { kind: "failed", owner: "provider", message: "503" } };
    const cli = await bookWith(scored("good", 1), scored("bad", 0), scored("lost", 1, failed), ANTHROPIC);
    const { rows, report } = await exported(cli, "--format sft");
    expect(rows.map(({ rollout_id, reward }) => [rollout_id, reward])).toEqual([
      ["bad", 0],
      ["good", 1],
      ["msg_1", 0.5],
    ]);
    expect(rows[1].messages).toEqual([
      { role: "system", content: "You track orders." },
      { role: "user", content: "Where is order 7?\nIt is late." },
      {
        role: "assistant",
        content: null,
        tool_calls: [{ id: "c-1", type: "function", function: { name: "track", arguments: '{"order":7}' } }],
      },
      { role: "tool", tool_call_id: "c-1", content: "in Lyon" },
      { role: "assistant", content: "It is in Lyon." },
    ]);
    expect(report.out).toContain("3 conversations");
    expect(report.err).toContain("failed-provider 1");
    expect(report.err).toContain("router (steps): 2 of 3 rollouts admitted, 2 written");
    const best = await exported(cli, "--format sft --min-score 0.6");
    expect(best.rows).toHaveLength(1);
    expect(best.report.err).toContain("router (steps): 2 of 3 rollouts admitted, 1 written");
  });

  it("pairs the best reply to a question with the worst, where they differ", async () => {
    const cli = await bookWith(
      ...[scored("a", 0.2), scored("b", 1), scored("c", 0.5)],
      scored("alone", 1, { task: { id: "task-rome" } }),
    );
    const { rows } = await exported(cli, "--format pairs");
    expect(rows).toMatchObject([
      {
        ...{ task_id: "task-paris", chosen_rollout_id: "b", rejected_rollout_id: "a" },
        ...{ chosen_reward: 1, rejected_reward: 0.2 },
        prompt: [{ role: "system" }, { role: "user" }],
        chosen: [{ role: "assistant" }, { role: "tool" }, { role: "assistant", content: "It is in Lyon." }],
      },
    ]);
    const apart = await cli.run("data export --format pairs --min-gap 0.9 --out apart.jsonl");
    expect([apart.code, apart.err]).toEqual([1, expect.stringContaining("[no-rows]")]);
    expect((await cli.run("data export --format pairs --min-score 1 --out x.jsonl")).code).toBe(2);
  });
});
