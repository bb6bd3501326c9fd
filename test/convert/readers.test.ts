/** pyarrow and DuckDB read the Parquet files of verl and ART: every value, and the types that verl and ART expect.
 *  datasets loads the files of TRL. */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { python } from "../../scripts/python.mjs";
import * as requirement from "../../scripts/setup/python-readers.mjs";
import { Cli } from "../support/cli.ts";
import { handedBook } from "../support/handed-book.ts";
import { taskWire } from "../support/handover-world.ts";
import { describeNeeding } from "../support/needs.ts";

// biome-ignore lint/suspicious/noExplicitAny: tests look into rows of every format
type Row = any;

const PROGRAM = `
import json, sys
import duckdb, pyarrow.parquet as pq
for path in sys.argv[1:]:
    table = pq.read_table(path)
    found = duckdb.connect(":memory:").execute("SELECT * FROM read_parquet(?)", [path])
    names = [each[0] for each in found.description]
    rows = [dict(zip(names, row)) for row in found.fetchall()]
    assert json.dumps(rows) == json.dumps(table.to_pylist()), "DuckDB and pyarrow differ"
    types = {name: str(table.schema.field(name).type) for name in table.column_names}
    print(json.dumps(dict(types=types, rows=rows, meta=json.loads(table.schema.metadata[b"rollbook"]))))
`;

const LOAD = `
import json, sys
from datasets import load_dataset
for path in sys.argv[1:]:
    data = load_dataset("json", data_files=path, split="train")
    print(json.dumps(dict(rows=len(data), columns=data.column_names)))
`;

await describeNeeding(requirement, "readers of Python", () => {
  it("load every row of the files of TRL, with the columns that its trainers read", async () => {
    const cli = new Cli();
    const batch = await handedBook(cli);
    const formats = {
      "trl-sft": ["messages"],
      "trl-dpo": ["prompt", "chosen", "rejected"],
      "trl-kto": ["prompt", "completion", "label"],
      "trl-grpo": ["prompt", "label", "payload"],
      "trl-rollouts": ["input_ids", "completion_mask", "old_log_probs", "advantage", "group_id"],
    };
    const rows: number[] = [];
    for (const to of Object.keys(formats)) {
      const out = join(cli.folder, to);
      const own = to === "trl-kto" ? " --threshold 0.5" : "";
      const [report] = await cli.json(`data convert --to ${to} --batch ${batch}${own} --out ${out}`);
      rows.push(report.rows);
    }
    const files = Object.keys(formats).map((name) => join(cli.folder, name));
    const env = { ...process.env, HF_HOME: cli.folder, HF_HUB_OFFLINE: "1" };
    const { stdout, status } = spawnSync(python, ["-c", LOAD, ...files], { encoding: "utf8", env });
    expect(status).toBe(0);
    const loaded: Row[] = stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(loaded.map((each) => each.rows)).toEqual(rows);
    for (const [i, columns] of Object.values(formats).entries())
      expect(loaded[i].columns).toEqual(expect.arrayContaining(columns));
  });

  it("read what was written for verl and ART", async () => {
    const cli = new Cli();
    const batch = await handedBook(cli);
    const file = (name: string) => join(cli.folder, name);
    const formats = ["verl", "verl-agent-loop", "art"];
    for (const to of formats) await cli.ok(`data convert --to ${to} --batch ${batch} --out ${file(to)}`);
    await cli.ok(`data convert --to slime --batch ${batch} --out ${file("slime")}`);
    const { stdout, stderr, status } = spawnSync(python, ["-c", PROGRAM, ...formats.map(file)], {
      encoding: "utf8",
    });
    expect([status, stderr]).toEqual([0, ""]);
    const [verl, loop, art] = stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as Row);
    for (const { meta } of [verl, loop, art]) expect(meta).toEqual({ batch });

    expect(verl.rows).toHaveLength(3);
    for (const { prompt, reward_model, extra_info } of verl.rows) {
      const task = taskWire(Number(reward_model.ground_truth) - 1);
      expect(prompt).toEqual([{ role: "user", content: task.prompt }]);
      expect(JSON.parse(extra_info.payload)).toEqual(task.payload);
      expect(extra_info).toMatchObject({ batch, task_id: task.id });
    }

    const slime: Row[] = readFileSync(file("slime"), "utf8")
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(loop.types).toMatchObject({
      prompt_ids: "list<element: int64 not null>",
      response_logprobs: "list<element: float not null>",
      reward_score: "double",
    });
    for (const [i, row] of loop.rows.entries()) {
      expect([...row.prompt_ids, ...row.response_ids]).toEqual(slime[i].tokens);
      expect(row.response_mask).toEqual(slime[i].loss_mask);
      expect(row.response_logprobs).toEqual(slime[i].rollout_log_probs);
      expect([row.reward_score, row.uid]).toEqual([slime[i].reward, slime[i].metadata.rollbook.group]);
      expect(row.extra_fields).toMatchObject({ batch, min_global_steps: 1, max_global_steps: 1 });
    }

    expect(art.types.messages).toBe(
      "list<element: struct<role: string, content: string, tool_calls: string, tool_call_id: string, trainable: bool> not null>",
    );
    expect(art.rows.map(({ group_index }: Row) => group_index)).toEqual(
      slime.map(({ group_index }) => group_index),
    );
    for (const { messages, metadata } of art.rows) {
      expect(messages.map(({ trainable }: Row) => trainable)).toEqual([false, false, true]);
      expect(JSON.parse(metadata)).toMatchObject({ batch, content: expect.stringMatching(/^sha256:/) });
    }
  });
});
