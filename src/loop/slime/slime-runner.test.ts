import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { SlimeRunner } from "./slime-runner.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "rollbook-slime-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function runnerOf(rows: readonly unknown[], options: Record<string, unknown> = {}): SlimeRunner {
  writeFileSync(join(folder, "rows.jsonl"), rows.map((row) => `${JSON.stringify(row)}\n`).join(""));
  writeFileSync(join(folder, "agent.py"), "");
  return new SlimeRunner({
    ...{ expId: "e1", agent: join(folder, "agent.py"), modelDir: "/m", modelType: "qwen2.5-3B" },
    ...{ dataPath: join(folder, "rows.jsonl"), book: join(folder, "book"), runDir: join(folder, "run") },
    ...options,
  });
}

describe("the folder of a run with slime", () => {
  it("holds rows, flags, hook, environment and a script that a user can start", async () => {
    const row = { prompt: "2 + 2", label: "4", metadata: { question: "2 + 2" } };
    const run = await runnerOf([row]).prepare({ numRollout: 3 });
    const text = (file: string) => readFileSync(join(run.path, file), "utf8");
    expect(JSON.parse(text("rows.jsonl"))).toEqual(row);
    expect(text("flags.txt").trimEnd().split("\n")).toEqual(run.flags);
    expect(JSON.parse(text("rollbook.json"))).toMatchObject({ rollbook_exp_id: "e1", rollbook_rate: 25 });
    expect(JSON.parse(text("environment.json")).env_vars.PYTHONPATH).toBe(`${run.path}:/root/Megatron-LM`);
    expect(text("rollbook_slime.py")).toContain("def generate_rollout(");
    expect(text("train.sh")).toContain('source "$model"');
    expect(statSync(run.script).mode & 0o777).toBe(0o700);
    expect(run.warnings).toEqual([]);
  });

  it("is written again for the same settings, and refused for others", async () => {
    const row = { prompt: "p", metadata: {} };
    await runnerOf([row]).prepare();
    await expect(runnerOf([row]).prepare({ numRollout: 9 })).resolves.toMatchObject({ rows: 1 });
    await expect(runnerOf([row], { lr: 1e-5, tpSize: 4 }).prepare()).rejects.toMatchObject({
      code: "slime-run-exists",
      message: expect.stringContaining("other settings (lr, tpSize)"),
    });
  });

  it("is not written for an agent that is not there", async () => {
    const runner = runnerOf([{ prompt: "p", metadata: {} }], { agent: join(folder, "gone.py") });
    await expect(runner.prepare()).rejects.toMatchObject({ code: "no-file" });
    await expect(
      runnerOf([{ prompt: "p", metadata: {} }], { agent: "http://127.0.0.1:9/" }).prepare(),
    ).resolves.toMatchObject({ rows: 1 });
  });

  it("has a script that finds slime in a folder with spaces", async () => {
    const slimeDir = join(folder, "it's my slime");
    const run = await runnerOf([{ prompt: "p", metadata: {} }], { slimeDir }).prepare();
    const { status, stderr } = spawnSync("bash", [run.script], { encoding: "utf8" });
    expect([status, stderr]).toEqual([2, expect.stringMatching(`^${slimeDir}/scripts/models/`)]);
  });

  it("warns of rows without metadata and says how to write them", async () => {
    const run = await runnerOf([
      { prompt: "p", label: "l" },
      { prompt: "p", metadata: {} },
    ]).prepare();
    expect(run.warnings).toEqual([
      expect.stringMatching(/rows.jsonl:1: metadata is missing.*\(1 of 2 rows\).*"metadata": \{…\}/),
    ]);
  });

  it.each([
    [{ prompt: "p", metadata: [1] }, "metadata is an array"],
    [{ prompt: 4, metadata: {} }, "prompt is neither a text nor a list of messages"],
    [{ metadata: {} }, "prompt is neither"],
    [{ prompt: "p", metadata: { _rollout: {} } }, "metadata._rollout has no effect"],
  ])("refuses the row %j before anything is written", async (row, message) => {
    await expect(runnerOf([{ prompt: "fine", metadata: {} }, row]).prepare()).rejects.toThrow(
      new RegExp(`rows.jsonl:2: .*${message}`),
    );
    expect(() => statSync(join(folder, "run"))).toThrow("ENOENT");
  });

  it("prints its command for a shell, with every word quoted where it must be", () => {
    const command = runnerOf([], {
      extraFlags: ["--rollout-stop", "it's"],
      slimeDir: "/opt/my slime",
    }).command();
    expect(command).toMatch(/^python3 '\/opt\/my slime\/train\.py' \\\n {2}"\$\{MODEL_ARGS\[@\]\}" \\\n/);
    expect(command).toContain("  --lr 0.000001 \\\n");
    expect(command.endsWith(`--rollout-stop 'it'\\''s'`)).toBe(true);
  });
});
