/** rollbook_torch. Tests that need no torch run everywhere. Steps and two windows with a model of a few thousand
 *  parameters need torch: `npm run interop -- torch` installs it, or ROLLBOOK_TORCH names a Python that has it. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join, resolve } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { python } from "../scripts/python.mjs";
import * as requirement from "../scripts/setup/python-arrow.mjs";
import { hasTorch, torchPython } from "../scripts/torch-python.mjs";
import { parseLoopConfig, runLoop } from "../src/loop/index.ts";
import { Cli, lines } from "./support/cli.ts";
import { writeConfig } from "./support/loop-world.ts";
import { describeNeeding } from "./support/needs.ts";

const PACKAGE = resolve("python/rollbook_torch");
const TESTS = join(PACKAGE, "tests");

function run(program: string, ...words: string[]) {
  const env = {
    ...process.env,
    PYTHONPATH: [PACKAGE, TESTS].join(delimiter),
    ...{ PYTHONDONTWRITEBYTECODE: "1", CUDA_VISIBLE_DEVICES: "", HF_HUB_OFFLINE: "1" },
  };
  return spawnSync(program, words, { env, encoding: "utf8" });
}

function passes(program: string, module: string): void {
  const { status, stderr } = run(program, "-m", "unittest", join(TESTS, module));
  expect(stderr).toMatch(/Ran [1-9]\d* tests[\s\S]*OK\n$/);
  expect(status).toBe(0);
}

await describeNeeding(requirement, "the trainer's batches", () => {
  it("are refused as test_refusals.py says: family, tokenizer, log-probabilities, the layer to suspect", () => {
    passes(python, "test_refusals.py");
  });
});

/** Makes one call. The reward varies with the model's reply, so that rewards differ within a group. */
const AGENT = `
export default async ({ question }, { baseUrl, apiKey, rolloutConfig, seed }) => {
  const body = { model: rolloutConfig.model_id, messages: [{ role: "user", content: question }], max_tokens: 4 };
  const reply = await fetch(baseUrl + "/chat/completions", {
    method: "POST",
    headers: { authorization: "Bearer " + apiKey, "content-type": "application/json" },
    body: JSON.stringify({ ...body, seed: Number(BigInt.asUintN(53, seed)) }),
  });
  const { choices } = await reply.json();
  return { reward: choices[0].message.content.length % 2 };
};
`;

if (hasTorch())
  describe("rollbook_torch with torch", () => {
    it("steps, resumes and refuses as test_trainer.py says", () => {
      passes(torchPython, "test_trainer.py");
    });

    it("serves while revisions are given up, as test_server.py says", () => {
      passes(torchPython, "test_server.py");
    });

    it.each(["synchronous", "asynchronous"])(
      "trains %s windows whose last revision verifies",
      async (mode) => {
        const folder = mkdtempSync(join(tmpdir(), "rollbook-torch-"));
        onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
        expect(run(torchPython, join(TESTS, "models.py"), join(folder, "model"), "1").stderr).toBe("");
        const rows = Array.from({ length: 4 }, (_, i) => ({
          prompt: `${i}+1=`,
          metadata: { question: `${i}+1=` },
        }));
        writeFileSync(join(folder, "tasks.jsonl"), lines(...rows));
        writeFileSync(join(folder, "agent.mjs"), AGENT);
        const windows = mode === "synchronous" ? 2 : 3;
        const path = writeConfig(folder, {
          ...{ run: "climb", book: "book", windows, rollouts: 32, samples: 8, workers: 8, mode },
          learner: { kind: "grpo", rate: 0.001 },
          world: {
            ...{ kind: "tokens", tasks: "tasks.jsonl", agent: "agent.mjs", model: "model", family: "adder" },
            ...{ python: torchPython, device: "cpu", threads: 1 },
          },
        });
        const config = parseLoopConfig(readFileSync(path, "utf8"), path, folder);
        const log: string[] = [];
        const { done } = await runLoop({
          ...{ config, book: config.book!, how: "start", log: (line) => log.push(line) },
        });
        expect(done).toBe(true);
        const steps = log.filter((line) => line.includes("recorded and recomputed"));
        expect(steps).toHaveLength(windows);
        for (const step of steps) expect(Number(/at most (\S+);/.exec(step)![1])).toBeLessThan(1e-3);
        const stale = steps.filter((step) => step.includes("32 stale rows")).length;
        expect(stale > 0).toBe(mode === "asynchronous");
        const cli = new Cli();
        const { code, err } = await cli.run(`verify climb-w${windows} --book ${config.book}`);
        expect([code, err]).toEqual([0, ""]);
      },
    );
  });
