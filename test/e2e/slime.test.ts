/** `rollbook slime train` against a stand-in program. Like slime, it reads flags and files, requests rollouts and
 *  checks samples. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join, resolve } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";

const STAND_IN = resolve("test/support/slime-stand-in");
const CLI = resolve("dist/cli/main.js");
let folder: string;

interface Trained {
  readonly others: readonly string[];
  readonly steps: readonly {
    readonly metrics: Readonly<Record<string, number>>;
    readonly rewards: readonly number[];
    readonly samples: readonly {
      readonly group_index: number;
      readonly index: number;
      readonly rollout_id: number;
      readonly tokens: readonly number[];
      readonly loss_mask: readonly number[];
      readonly rollout_log_probs: readonly number[];
      readonly reward: number | null;
      readonly status: string;
      readonly remove_sample: boolean;
      readonly metadata: Readonly<Record<string, unknown>>;
    }[];
  }[];
}

/** Answers 7 or 8, as the model does. On the third task the agent fails before its call. On the fourth task it reports
 *  a broken task after the model's answer. The agent also changes its copy of the payload. */
const AGENT = `
import json, os, sys, urllib.request
request = json.load(sys.stdin)
payload, config = request["payload"], request["rollout_config"]
if payload["a"] == 3: sys.exit("no scale at hand")
broken = payload["a"] == 4
payload["a"] = "changed by the agent"
body = {"model": config["model_id"], "messages": [{"role": "user", "content": "3 + 4"}], **config["sampling_params"]}
call = urllib.request.Request(config["base_url"] + "/chat/completions", json.dumps(body).encode(),
  {"content-type": "application/json", "authorization": "Bearer " + config["api_key"]})
answer = json.load(urllib.request.urlopen(call))["choices"][0]["message"]["content"]
if broken: print(json.dumps({"error": {"owner": "task", "message": "no such sum"}}))
else: print(json.dumps({"reward": 1.0 if answer == "7" else 0.0}))
`;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "rollbook-slime-e2e-"));
  writeFileSync(join(folder, "agent.py"), AGENT);
  const rows = [1, 2, 3, 4].map((a) => ({ prompt: `${a}`, label: "7", metadata: { a } }));
  writeFileSync(join(folder, "rows.jsonl"), rows.map((row) => `${JSON.stringify(row)}\n`).join(""));
  writeFileSync(
    join(folder, "slime.yaml"),
    `expId: climb
agent: agent.py
modelDir: /models/tiny
modelType: tiny
dataPath: rows.jsonl
book: book
slimeDir: ${STAND_IN}
gatewayPort: 0
rolloutBatchSize: 4
nSamplesPerPrompt: 4
maxConcurrent: 4
`,
  );
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function rollbook(...words: string[]) {
  const env = {
    ...process.env,
    PATH: `${join(STAND_IN, "bin")}${delimiter}${process.env.PATH}`,
    ROLLBOOK_HOME: join(folder, "home"),
    STAND_IN_OUT: join(folder, "trained.json"),
    RAY_LOG: join(folder, "ray.log"),
  };
  return spawnSync(process.execPath, [CLI, ...words], { cwd: folder, env, encoding: "utf8" });
}

it("gives slime samples of recorded tokens, and advantages that no failure moves", () => {
  expect(rollbook("init", "--book", "book").status).toBe(0);
  const ran = rollbook(
    "slime",
    "train",
    "--config",
    "slime.yaml",
    "--num-rollout",
    "2",
    "--",
    "--num-epoch",
    "3",
  );
  expect(ran.stderr).not.toContain("Traceback");
  expect(ran.status).toBe(0);
  const { others, steps } = JSON.parse(readFileSync(join(folder, "trained.json"), "utf8")) as Trained;
  expect(others.slice(0, 4)).toEqual(["--num-layers", "2", "--hidden-size", "64"]);
  expect(others.slice(-2)).toEqual(["--num-epoch", "3"]);
  expect(steps).toHaveLength(2);
  for (const { samples, rewards, metrics } of steps) {
    expect(samples).toHaveLength(16);
    expect(metrics).toMatchObject({ "rollout/rollbook_removed": 8 });
    for (const [i, sample] of samples.entries()) {
      const failed = i >= 8;
      expect(sample).toMatchObject({
        rollout_id: sample.index,
        remove_sample: failed,
        status: failed ? "failed" : "completed",
        metadata: {
          a: 1 + Math.floor(i / 4),
          rollbook: expect.objectContaining({ content: expect.stringMatching(/^sha256:/) }),
        },
      });
      if (failed) expect([sample.reward, sample.loss_mask, rewards[i]]).toEqual([null, [0], 0]);
      else {
        const text = sample.reward === 1 ? 17 : 18;
        expect(sample).toMatchObject({
          tokens: [1, 2, 3, text, 2],
          loss_mask: [1, 1],
          rollout_log_probs: [-0.5, -0.25],
        });
        expect(Math.sign(rewards[i]!)).toBe(sample.reward === 1 ? 1 : -1);
      }
    }
  }
  // Every step is a sealed batch of the revision that sampled it, and the book verifies.
  expect(rollbook("verify", "--book", "book").status).toBe(0);
  expect(readFileSync(join(folder, "ray.log"), "utf8").split("\n")).toEqual([
    "start --head --num-gpus 8 --disable-usage-stats",
    "stop",
    "",
  ]);
}, 120_000);

it("prints the command and writes nothing with --dry-run", () => {
  const { status, stdout } = rollbook(
    "slime",
    "train",
    "--config",
    "slime.yaml",
    "--dry-run",
    "--",
    "--num-epoch",
    "3",
  );
  expect(status).toBe(0);
  expect(stdout).toContain(`${STAND_IN}/train.py`);
  expect(stdout.trimEnd().endsWith("--num-epoch 3")).toBe(true);
});

it("says which model types slime has when the one that is named is none of them", () => {
  writeFileSync(
    join(folder, "other.yaml"),
    readFileSync(join(folder, "slime.yaml"), "utf8")
      .replace("modelType: tiny", "modelType: huge")
      .replace("expId: climb", "expId: other"),
  );
  const { status, stderr } = rollbook("slime", "train", "--config", "other.yaml");
  expect(status).toBe(1);
  expect(stderr).toContain("huge.sh does not exist");
  expect(stderr).toContain("tiny");
});
