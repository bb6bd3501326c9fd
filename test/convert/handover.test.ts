/** Rollouts of a book in the formats of trainers, through the command line in this process. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parseId } from "../../src/base/ids.ts";
import { encodeWire, PolicyRevision } from "../../src/contract/index.ts";
import { Cli, lines } from "../support/cli.ts";
import { handedBook } from "../support/handed-book.ts";
import { handedWire, revisionWires, taskWire } from "../support/handover-world.ts";
import { makeRevision, stepWire } from "../support/shelf.ts";

// biome-ignore lint/suspicious/noExplicitAny: tests look into rows of every format
type Row = any;

async function convert(cli: Cli, words: string): Promise<{ rows: Row[]; losses: Row; report: Row }> {
  const out = join(cli.folder, `out-${Math.random()}.jsonl`);
  const [report] = await cli.json(`data convert --out ${out} ${words}`);
  const rows = readFileSync(out, "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  expect(rows).toHaveLength(report.rows);
  const losses = Object.fromEntries(report.losses.map(({ field, count }: Row) => [field, count]));
  return { rows, losses, report };
}

async function refused(cli: Cli, words: string, exit = 1): Promise<string> {
  const out = join(cli.folder, "refused.jsonl");
  const { code, err } = await cli.run(`data convert --out ${out} ${words}`);
  expect(code).toBe(exit);
  expect(existsSync(out)).toBe(false);
  expect(readdirSync(cli.folder).filter((name) => name.includes("partial"))).toEqual([]);
  return err;
}

const failed = (owner: string) => ({ ending: { kind: "failed", owner, message: "no answer" } });

describe("slime samples", () => {
  it("keep groups together, count rollouts, and align mask and log-probabilities with the response", async () => {
    const cli = new Cli();
    const batch = await handedBook(cli);
    const { rows, losses } = await convert(cli, `--to slime --batch ${batch}`);
    expect(rows.map((row) => row.group_index)).toEqual([0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2]);
    expect(rows.map((row) => row.index)).toEqual([...rows.keys()]);
    expect(new Set(rows.map((row) => row.rollout_id)).size).toBe(12);
    for (const row of rows) {
      expect(row.tokens.slice(0, 3)).toEqual([1, 2, 3]);
      expect(row.response_length).toBe(3);
      expect([row.loss_mask, row.rollout_log_probs]).toEqual([
        [1, 1, 1],
        [-0.5, -0.25, -0.125],
      ]);
      expect(row).toMatchObject({
        status: "completed",
        remove_sample: false,
        weight_versions: ["policy-r1"],
      });
      expect(row.metadata.rollbook).toMatchObject({ batch, content: expect.stringMatching(/^sha256:/) });
      expect(row.metadata.answer).toBe(Number(row.label));
    }
    expect(losses).toMatchObject({ seed: 12, sampling: 12, "calls.usage": 12 });
  });

  it("mark the failures of others, which never become a reward of 0", async () => {
    const cli = new Cli();
    const extra = [
      handedWire("r-0-x", { question: 0, over: failed("provider") }),
      handedWire("r-1-x", { question: 1, over: failed("agent"), reward: -1 }),
      handedWire("r-2-x", { question: 2, over: { ending: { kind: "cancelled" } } }),
    ];
    const batch = await handedBook(cli, { extra });
    const { rows } = await convert(cli, `--to slime --batch ${batch}`);
    const marked = (name: string) => rows.find((row) => row.session_id === name);
    expect(marked("r-0-x")).toMatchObject({ status: "failed", remove_sample: true, reward: null });
    expect(marked("r-1-x")).toMatchObject({ status: "failed", remove_sample: false, reward: -1 });
    expect(marked("r-2-x")).toMatchObject({ status: "aborted", remove_sample: true, reward: null });
    const omitted = await convert(cli, `--to slime --batch ${batch} --failures omit --uneven keep`);
    expect(omitted.rows).toHaveLength(13);
    expect(omitted.losses["excluded rollouts (--failures omit)"]).toBe(2);
  });

  it("of one rollout with two streams share its rollout_id", async () => {
    const cli = new Cli();
    const two = handedWire("r-fork", { question: 3 }) as Row;
    const extra = [{ ...two, streams: [two.streams[0], { ...two.streams[0], ids: [1, 2, 3, 7, 8, 9] }] }];
    const batch = await handedBook(cli, { extra, questions: 1, size: 1 });
    const { rows } = await convert(cli, `--to slime --batch ${batch}`);
    const forks = rows.filter((row) => row.session_id === "r-fork");
    expect(new Set(forks.map((row) => row.rollout_id)).size).toBe(1);
    expect(new Set(rows.map((row) => row.index)).size).toBe(3);
  });

  it("refuse uneven groups and groups of failures only, and leave no file", async () => {
    const cli = new Cli();
    const uneven = await handedBook(cli, { extra: [handedWire("r-0-x", { question: 0 })] });
    expect(await refused(cli, `--to slime --batch ${uneven}`)).toContain("[uneven-groups]");
    expect((await convert(cli, `--to slime --batch ${uneven} --uneven keep`)).rows).toHaveLength(13);
    const other = new Cli();
    const all = [0, 1, 2, 3].map((i) => handedWire(`r-3-${i}`, { question: 3, over: failed("sandbox") }));
    const broken = await handedBook(other, { extra: all });
    const err = await refused(other, `--to slime --batch ${broken}`);
    expect(err).toContain("group g-3 holds failures only (failed-sandbox)");
    expect(err).toContain("--failures omit");
    expect((await convert(other, `--to slime --batch ${broken} --failures omit`)).rows).toHaveLength(12);
  });
});

const routerWire = encodeWire(
  PolicyRevision,
  makeRevision("router-r1", { family: parseId("router"), number: 1n }).record,
) as Row;

const TOKEN_FORMATS = ["slime", "trl-rollouts", "verl-agent-loop"];

describe("formats of tokens", () => {
  it.each(TOKEN_FORMATS)(
    "%s refuses model log-probabilities, with the row and the remedy",
    async (format) => {
      const cli = new Cli();
      await cli.ok("init");
      const rollout = handedWire("r-model", { stream: { logprobKind: "model" } });
      await cli.ok("artifact import -", lines(...revisionWires(), taskWire(1), rollout));
      const [{ digest }] = await cli.json("batch assemble --target policy-r2 --level token");
      const err = await refused(cli, `--to ${format} --batch ${digest}`);
      expect(err).toContain("rollout r-model has model log-probabilities");
      expect(err).toContain("[wrong-logprob-kind]");
    },
  );

  it("refuse a mix of tokenizers, with the row and the remedy", async () => {
    const cli = new Cli();
    const extra = [handedWire("r-other", { question: 0, stream: { tokenizer: `sha256:${"a".repeat(64)}` } })];
    const batch = await handedBook(cli, { extra, questions: 1, size: 3 });
    for (const format of TOKEN_FORMATS) {
      const err = await refused(cli, `--to ${format} --batch ${batch}`);
      expect(err).toMatch(/rollout r-other .* --tokenizer/);
      expect(err).toContain("[mixed-tokenizers]");
    }
  });

  it("need a batch, and one that has log-probabilities", async () => {
    const cli = new Cli();
    const steps = handedWire("r-steps", { question: 3 }) as Row;
    const extra = [{ ...steps, streams: [stepWire({ step: { call: 0 } })] }];
    await handedBook(cli, { extra: [routerWire, ...extra], questions: 1 });
    const [{ digest }] = await cli.json("batch assemble --target router-r1 --level step");
    for (const format of TOKEN_FORMATS) {
      expect(await refused(cli, `--to ${format}`, 2)).toContain("--batch");
      const err = await refused(cli, `--to ${format} --batch ${digest}`);
      expect(err).toContain("batch assemble --target REVISION --level token");
      expect(err).toContain("[no-logprobs]");
    }
  });

  it("trl-rollouts carries the batch's advantages and aligns every array with the ids", async () => {
    const cli = new Cli();
    const batch = await handedBook(cli);
    const { rows } = await convert(cli, `--to trl-rollouts --batch ${batch}`);
    for (const row of rows) {
      expect(row.completion_mask).toHaveLength(row.input_ids.length);
      expect(row.old_log_probs).toHaveLength(row.input_ids.length);
      expect(row.model_version).toBe(1);
      expect(row.rollbook.batch).toBe(batch);
    }
    const sums = new Map<number, number>();
    for (const { group_id, advantage } of rows) sums.set(group_id, (sums.get(group_id) ?? 0) + advantage);
    expect([...sums.keys()]).toEqual([0, 1, 2]);
    for (const sum of sums.values()) expect(sum).toBeCloseTo(0, 5);
  });
});

it("a file without rows is refused with the reason", async () => {
  const cli = new Cli();
  const alike = [0, 1].map((i) => handedWire(`r-${i}`, { question: 0, reward: 1, reply: `it is ${i}` }));
  await handedBook(cli, { questions: 0, size: 0, extra: alike });
  const err = await refused(cli, "--to trl-dpo");
  expect(err).toMatch(/no row can be written to .*: 2 rollouts without a pair\. .*\[no-rows\]/);
});

it("options without an effect are refused", async () => {
  const cli = new Cli();
  const batch = await handedBook(cli, { questions: 1, size: 2 });
  const cases = [
    ["--to trl-sft --uneven keep", "--uneven has no effect on trl-sft"],
    ["--to trl-sft --threshold 1", "--threshold has no effect on trl-sft: it belongs to trl-kto"],
    ["--to slime --batch B --min-gap 1", "--min-gap has no effect on slime"],
    ["--to trl-sft --batch B --since 2026-01-01", "--since has no effect with --batch"],
    ["--from atif x.jsonl --batch B", "--batch has no effect with --from"],
  ] as const;
  for (const [words, message] of cases)
    expect(await refused(cli, words.replace("B", batch), 2)).toContain(message);
});

describe("formats of conversations", () => {
  it("slime-prompts writes each task once: its payload verbatim, its provenance beside it", async () => {
    const cli = new Cli();
    const batch = await handedBook(cli);
    for (const words of ["--to slime-prompts", `--to slime-prompts --batch ${batch}`]) {
      const { rows, losses } = await convert(cli, words);
      expect(rows).toHaveLength(3);
      expect(losses.reward).toBe(12); // one for each rollout of the three tasks
      for (const { prompt, label, metadata, rollbook } of rows) {
        const question = Number(label) - 1;
        expect(prompt).toBe(taskWire(question).prompt);
        expect(metadata).toEqual(taskWire(question).payload);
        expect(rollbook.task).toBe(`sum-${question}`);
      }
    }
  });

  it("slime-prompts of a task without a record has empty metadata and a warning with the remedy", async () => {
    const cli = new Cli();
    await cli.ok("init");
    const rollout = handedWire("r", { over: { task: { id: "unknown" } } });
    await cli.ok("artifact import -", lines(...revisionWires(), rollout));
    const { rows, report } = await convert(cli, "--to slime-prompts");
    expect(rows[0]).toMatchObject({ metadata: {}, prompt: [{ role: "system" }, { role: "user" }] });
    expect(report.warnings).toEqual([
      "task unknown has no record in the book: metadata is empty. Launch tasks with `rollbook launch` to record their payloads.",
    ]);
  });

  it("prompts of calls that were served by themselves are one row each, and what they lack is said once", async () => {
    const cli = new Cli();
    await cli.ok("init");
    const single = (id: string, question: number) =>
      handedWire(id, { question, over: { task: { id: "single-call" } } });
    const asked = [single("r-1", 1), single("r-2", 2), single("r-3", 2)];
    await cli.ok("artifact import -", lines(...revisionWires(), ...asked));
    const ids = ["r-1", "r-2", "r-3"];
    const slime = await convert(cli, "--to slime-prompts");
    expect(slime.rows.map(({ rollbook }) => rollbook.task)).toEqual(ids);
    expect(slime.report.warnings).toEqual([
      expect.stringMatching(/^task r-1 and 2 more have no record in the book/),
    ]);
    const grpo = await convert(cli, "--to trl-grpo");
    expect(grpo.rows.map(({ task_id }) => task_id)).toEqual(ids);
    const out = join(cli.folder, "prompts.parquet");
    const [verl] = await cli.json(`data convert --to verl --out ${out}`);
    expect(verl).toMatchObject({ rows: 3 });
  });

  it("trl-sft, trl-dpo, trl-kto and trl-grpo have the columns their trainers read", async () => {
    const cli = new Cli();
    const extra = [handedWire("r-9", { question: 1, over: failed("provider") })];
    const batch = await handedBook(cli, { extra });
    const sft = await convert(cli, `--to trl-sft --batch ${batch}`);
    expect(sft.rows).toHaveLength(12);
    expect(sft.rows[0].messages.map(({ role }: Row) => role)).toEqual(["system", "user", "assistant"]);
    expect(sft.losses["excluded rollouts"]).toBe(1);
    const dpo = await convert(cli, "--to trl-dpo --min-gap 0.5");
    expect(dpo.rows).toHaveLength(3);
    for (const row of dpo.rows) {
      expect([row.chosen_reward, row.rejected_reward]).toEqual([0.75, 0]);
      expect([row.prompt.length, row.chosen.length, row.rejected.length]).toEqual([2, 1, 1]);
    }
    const kto = await convert(cli, "--to trl-kto --threshold 0.5");
    expect(kto.rows.filter(({ label }) => label)).toHaveLength(6);
    expect(await refused(cli, "--to trl-kto", 2)).toContain("--threshold");
    const grpo = await convert(cli, "--to trl-grpo");
    expect(grpo.rows.map((row) => JSON.parse(row.label))).toEqual([1, 2, 3]);
  });

  it("trl rows have tool arguments as objects, and leave out what does not parse", async () => {
    const cli = new Cli();
    const call = (text: string) => ({
      role: "assistant",
      content: null,
      tool_calls: [{ id: "c", type: "function", function: { name: "add", arguments: text } }],
    });
    const extra = ['{"a":1}', "{broken"].map((text, i) => {
      const wire = handedWire(`r-tool-${i}`, { question: 3 }) as Row;
      wire.calls[0].response.messages = [call(text)];
      return wire;
    });
    await handedBook(cli, { extra, questions: 1, size: 1 });
    const { rows, losses } = await convert(cli, "--to trl-sft");
    const [tool] = rows.filter((row) => row.rollout_id === "r-tool-0");
    expect(tool.messages.at(-1).tool_calls[0].function.arguments).toEqual({ a: 1 });
    expect(losses["conversations with broken tool calls"]).toBe(1);
  });
});
