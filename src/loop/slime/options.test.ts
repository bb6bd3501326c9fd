import { describe, expect, it } from "vitest";
import { slimeFlags } from "./flags.ts";
import { checkSlimeOptions, parseSlimeYaml } from "./options.ts";
import type { SlimeOptions } from "./settings.ts";

const REQUIRED = {
  expId: "e1",
  agent: "agent.py",
  modelDir: "/m",
  dataPath: "rows.jsonl",
  modelType: "qwen2.5-3B",
};
const check = (options: Partial<Record<keyof SlimeOptions | string, unknown>> = {}) =>
  checkSlimeOptions({ ...REQUIRED, ...options }, "slime.yaml", "/work");
const flagsOf = (options: Partial<SlimeOptions> = {}) =>
  slimeFlags(check(options), { numRollout: 7, rows: "/r/rows.jsonl", hookConfig: "/r/rollbook.json" });
const valueIn = (flags: readonly string[], name: string) => flags[flags.indexOf(name) + 1];

describe("settings of slime", () => {
  it("take the defaults of the runner that they follow, and paths from the folder of the file", () => {
    const settings = parseSlimeYaml(
      "expId: e1\nagent: agent.py\nmodelDir: /m\ndataPath: rows.jsonl\nmodelType: qwen2.5-3B\n",
      "slime.yaml",
      "/work",
    );
    expect(settings).toMatchObject({
      ...{ numGpus: 8, tpSize: 2, rolloutGpusPerEngine: 2, rolloutBatchSize: 32, nSamplesPerPrompt: 8 },
      ...{ rolloutMaxResponseLen: 1024, rolloutTemperature: 1, lr: 1e-6, epsClip: 0.2, epsClipHigh: 0.28 },
      ...{ weightDecay: 0.1, adamBeta2: 0.98, maxTokensPerGpu: 9216, timeLimit: 900, rate: 25 },
      ...{
        agent: "/work/agent.py",
        dataPath: "/work/rows.jsonl",
        refLoad: "/m",
        runDir: "/work/slime-runs/e1",
      },
    });
  });

  it.each([
    [{ rolloutBatchsize: 4 }, "unknown key rolloutBatchsize. Did you mean rolloutBatchSize?"],
    [{ rollout_batch_size: 4 }, "unknown key rollout_batch_size. Did you mean rolloutBatchSize?"],
    [{ numGpus: 8, tpSize: 3 }, "numGpus: 8 is not a multiple of tpSize, 3"],
    [{ rolloutGpusPerEngine: 5 }, "not a multiple of rolloutGpusPerEngine, 5"],
    [{ epsClip: 0.5 }, "epsClipHigh: 0.28 is below epsClip, 0.5"],
    [{ nSamplesPerPrompt: 1 }, "a group needs two or more"],
    [{ sglangContextLength: 512 }, "leaves no room for a prompt"],
    [{ wandbGroup: "g" }, "wandbGroup has no effect without wandbProject"],
    [{ extraFlags: ["--lr", "1"] }, "extraFlags: --lr is written from lr. Change that setting instead"],
    [{ extraFlags: ["--colocate"] }, "extraFlags: --colocate is written from Rollbook. Leave it out"],
    [{ lr: 0 }, "lr must be above 0"],
  ])("refuse %j", (options, message) => {
    expect(() => check(options)).toThrow(message);
  });
});

describe("the flags of slime", () => {
  it("carry the settings and the hook; a setting that is not given writes no flag", () => {
    const flags = flagsOf({ lr: 2e-6, tpSize: 4 });
    expect(valueIn(flags, "--lr")).toBe("0.000002");
    expect(valueIn(flags, "--tensor-model-parallel-size")).toBe("4");
    expect(valueIn(flags, "--num-rollout")).toBe("7");
    expect(valueIn(flags, "--prompt-data")).toBe("/r/rows.jsonl");
    expect(valueIn(flags, "--rollout-function-path")).toBe("rollbook_slime.generate_rollout");
    expect(flags).not.toContain("--sglang-context-length");
    expect(flags).not.toContain("--use-wandb");
  });

  it("end with further flags as they are, and write none twice", () => {
    const flags = flagsOf({ extraFlags: ["--num-epoch", "3"], wandbProject: "p" });
    expect(flags.slice(-2)).toEqual(["--num-epoch", "3"]);
    const names = flags.filter((word) => word.startsWith("--"));
    expect(new Set(names).size).toBe(names.length);
    expect(flags).toContain("--use-wandb");
  });
});
