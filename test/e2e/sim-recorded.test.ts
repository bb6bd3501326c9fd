import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { readRecorded } from "../../src/book/sim/read-recorded.ts";
import { recordedModels, recordedWorld } from "../../src/collect/sim/play/recorded.ts";
import { knownValues } from "../../src/collect/sim/world/world.ts";
import type { RoutingRow } from "../../src/convert/routing-jsonl.ts";
import { Cli } from "../support/cli.ts";
import { RECORDED_CSV, RECORDED_YAML } from "../support/recorded-answers.ts";

function recorded(): { cli: Cli; path: string } {
  const cli = new Cli();
  cli.file("answers.csv", RECORDED_CSV);
  return { cli, path: cli.file("recorded.yaml", RECORDED_YAML) };
}

describe("recorded answers", () => {
  it("are served as they were given; what is not on record is a clear 404", async () => {
    const answer = recordedModels(await readRecorded(recorded().path));
    const ask = async (model: string, content: string) => {
      const body = JSON.stringify({ model, messages: [{ role: "user", content }] });
      const response = await answer(
        new Request("http://local/v1/chat/completions", { method: "POST", body }),
      );
      return [response.status, await response.json()];
    };
    expect(await ask("dear", "Which is heavier?")).toMatchObject([
      200,
      {
        choices: [{ message: { content: "the second,\nI think" }, finish_reason: "stop" }],
        usage: { prompt_tokens: 5, completion_tokens: 5 },
      },
    ]);
    expect(await ask("dear", "Which is lighter?")).toMatchObject([
      404,
      { error: { code: "unknown_prompt" } },
    ]);
    expect(await ask("other", "Which is heavier?")).toMatchObject([
      404,
      { error: { code: "model_not_found" } },
    ]);
  });

  it("make every value exact: by hand, the cheap model for sums and the dear one for capitals", async () => {
    const { best, single, bestFor } = knownValues(recordedWorld(await readRecorded(recorded().path)));
    // Token counts: prompts 7, 8, 5; replies of `cheap` 1, 1, 3; replies of the expensive model 4, 5, 5.
    const cheap = [7, 8, 5].map((prompt, i) => (prompt * 0.5 + [1, 1, 3][i]!) / 1e6 / 0.01 / 2);
    const dear = [7, 8, 5].map((prompt, i) => (prompt * 100 + [4, 5, 5][i]! * 300) / 1e6 / 0.01 / 2);
    const mean = (values: number[]) => values.reduce((sum, each) => sum + each, 0) / 3;
    expect(single.cheap).toBeCloseTo(mean([1 - cheap[0]!, -cheap[1]!, -cheap[2]!]), 12);
    expect(single.dear).toBeCloseTo(mean([1 - dear[0]!, 1 - dear[1]!, -dear[2]!]), 12);
    expect(best).toBeCloseTo(mean([1 - cheap[0]!, 1 - dear[1]!, -cheap[2]!]), 12);
    expect(bestFor).toEqual({ cheap: 2, dear: 1 });
  });

  it("are collected through gateway and launcher, with rewards that the records give", async () => {
    const { cli, path } = recorded();
    const [summary] = await cli.json(`sim collect --recorded ${path} --policy uniform --samples 8`);
    expect(summary).toMatchObject({ kind: "summary", done: 24 });
    const known = recordedWorld(await readRecorded(path));
    const out = join(cli.folder, "routing.jsonl");
    await cli.ok(`data export --out ${out}`);
    const rows = readFileSync(out, "utf8")
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as RoutingRow);
    expect(rows).toHaveLength(24);
    for (const { state, model_chosen: model, reward, propensity, data_source: source } of rows) {
      const question = known.contexts.findIndex(({ prompt }) => prompt === state.prompt);
      const chosen = known.candidates.findIndex(({ id }) => id === model);
      expect([propensity, source]).toEqual([0.5, "real"]);
      expect(reward).toBeCloseTo(known.value(question, chosen), 12);
    }
    expect(new Set(rows.map((row) => row.model_chosen)).size).toBe(2);
  });

  it("are told apart by who gave them where two models say the same and only one is judged right", async () => {
    const { cli } = recorded();
    const row = { prompt: "one", cheap: true, dear: false, cheap_response: "same", dear_response: "same" };
    cli.file("answers.jsonl", JSON.stringify(row));
    const path = cli.file("recorded.yaml", RECORDED_YAML.replace("answers.csv", "answers.jsonl"));
    const results = (await cli.json(`sim collect --recorded ${path} --samples 8`)).slice(-1);
    const { single } = results[0].values;
    const out = join(cli.folder, "routing.jsonl");
    await cli.ok(`data export --out ${out}`);
    const rows = readFileSync(out, "utf8").trimEnd().split("\n");
    const seen = rows.map((line) => JSON.parse(line) as RoutingRow);
    for (const { model_chosen: model, reward } of seen) expect(reward).toBeCloseTo(single[model!], 12);
    expect(new Set(seen.map((each) => each.model_chosen)).size).toBe(2);
  });

  it.each([
    ["prompt: prompt", "prompt: question", /no column "question"/],
    ["correct: cheap,", "correct: cheap_response,", /"four" is neither true, false/],
    ["file: answers.csv", "fil: answers.csv", /recorded.yaml: /],
  ])("with %s made %s stop with the place", async (from, to, error) => {
    const { cli } = recorded();
    const path = cli.file("recorded.yaml", RECORDED_YAML.replace(from, to));
    await expect(readRecorded(path)).rejects.toThrow(error);
  });

  it("come as JSON Lines too, without the prompts that are to be dropped", async () => {
    const { cli } = recorded();
    const row = (prompt: string) => ({
      prompt,
      cheap: 1,
      dear: 0.5,
      cheap_response: "a",
      dear_response: "b",
    });
    cli.file("answers.jsonl", [row("one"), row("two")].map((each) => JSON.stringify(each)).join("\n"));
    cli.file("bad.jsonl", '{"eval_prompt": "one"}\n');
    const path = cli.file(
      "recorded.yaml",
      `${RECORDED_YAML.replace("answers.csv", "answers.jsonl")}drop: { file: bad.jsonl, field: eval_prompt }\n`,
    );
    const { questions } = await readRecorded(path);
    expect(questions.map(({ prompt }) => prompt)).toEqual(["two"]);
    expect(questions[0]!.answers.dear).toEqual({ response: "b", correct: 0.5 });
  });
});
