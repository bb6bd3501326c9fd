import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { running } from "../../../../../test/support/abandon.ts";
import { MISDEEDS, OBEDIENT } from "../../../../../test/support/agent-misdeeds.ts";
import { type Json, rngFrom } from "../../../../base/index.ts";
import type { Agent, RolloutContext } from "../agent.ts";
import { endingOfError } from "../failure.ts";
import { loadAgent } from "../load-agent.ts";
import { findBubblewrap } from "./confine.ts";
import { lineSplitter, pack, unpack } from "./wire.ts";

const folder = mkdtempSync(join(tmpdir(), "rollbook-pool-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function context(given: Partial<RolloutContext> = {}): RolloutContext {
  return {
    ...{ rolloutId: "r-1", sample: 0, attempt: 1, seed: 2n ** 63n, rng: rngFrom(1n) },
    signal: new AbortController().signal,
    rolloutConfig: { exp_id: "e", input_id: "t" },
    nextTurn: () => 1,
    log: () => {},
    ...given,
  };
}

function file(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

const endingFrom = (run: Promise<unknown>) => run.then((value) => ({ value }), endingOfError);

const isolations = ["process", ...(findBubblewrap() === undefined ? [] : ["bubblewrap"])] as const;

describe.each(isolations)("an agent in the pool, isolation %s", (isolation) => {
  let agent: Agent;
  beforeAll(async () => {
    agent = await loadAgent(file(`obedient-${isolation}.mjs`, OBEDIENT), {
      isolation: isolation as "process",
    });
  });
  const run = (code: string, given: Partial<RolloutContext> = {}) => agent.run({ code }, context(given));

  it.each(Object.entries(MISDEEDS))(
    "that %s has failed, and the next rollout runs",
    async (misdeed, code) => {
      // Only the time limit ends some of these agents. The limit is short, but long enough for their code to begin.
      const signal = AbortSignal.timeout(/^(spins|ignores)/.test(misdeed) ? 400 : 1_500);
      const ending = await endingFrom(run(code, { signal }));
      expect(ending).toMatchObject({ kind: "failed", owner: "agent", message: expect.stringMatching(/\S/) });
      expect(await run("return 1")).toBe(1);
    },
    30_000,
  );

  it("that misbehaves takes no other rollout with it", async () => {
    const good = Array.from({ length: 3 }, (_, i) =>
      run(`await new Promise((r) => setTimeout(r, 300)); return ${i}`),
    );
    const bad = endingFrom(run("process.exit(0)"));
    expect(await Promise.all(good)).toEqual([0, 1, 2]);
    expect(await bad).toMatchObject({ owner: "agent" });
  }, 30_000);

  it("gets the context of a rollout: seed, turns, configuration, signal and log", async () => {
    const logs: string[] = [];
    const code = `
      console.log("printed"); console.error("warned"); context.log("logged");
      const first = context.nextTurn();
      const { seed, maxTurns, rolloutId, rolloutConfig, baseUrl, apiKey } = context;
      let cut; try { context.nextTurn() } catch (error) { cut = error.code }
      return { finalState: { seed, maxTurns, rolloutId, rolloutConfig, baseUrl, apiKey, first, cut, draw: context.rng.float() } }`;
    const given = {
      maxTurns: 1,
      baseUrl: "http://127.0.0.1:1/v1",
      apiKey: "rk-1",
      log: (line: string) => logs.push(line),
    };
    expect(await run(code, given)).toEqual({
      finalState: {
        ...{ seed: 2n ** 63n, maxTurns: 1, rolloutId: "r-1", first: 1, cut: "limit-turns" },
        ...{
          baseUrl: "http://127.0.0.1:1/v1",
          apiKey: "rk-1",
          rolloutConfig: { exp_id: "e", input_id: "t" },
        },
        draw: rngFrom(2n ** 63n).float(),
      },
    });
    await vi.waitFor(() => expect([...logs].sort()).toEqual(["logged", "printed", "warned"]));
  });

  it("logs whole lines with the rollout that printed them, also one that the end cuts short", async () => {
    const logs: string[] = [];
    for (let i = 0; i < 20; i++) {
      const code = `process.stdout.write("li"); process.stdout.write("ne ${i}\\nand ${i}"); return 1`;
      await run(code, { log: (line) => logs.push(`${i}: ${line}`) });
    }
    expect(logs).toEqual(Array.from({ length: 20 }, (_, i) => [`${i}: line ${i}`, `${i}: and ${i}`]).flat());
  });

  it("that heeds its signal returns what it has", async () => {
    const code =
      "await new Promise((done) => context.signal.addEventListener('abort', done)); return { reward: 0.5 }";
    expect(await run(code, { signal: AbortSignal.timeout(50) })).toEqual({ reward: 0.5 });
  });

  it("says who is to blame in the words of the package, whichever copy of it", async () => {
    const named = (code: string) =>
      `throw Object.assign(new Error('gone'), { name: 'RollbookError', code: '${code}' })`;
    expect(await run(named("failed-provider"))).toEqual({
      ending: { kind: "failed", owner: "provider", message: "gone" },
    });
    expect(await endingFrom(run(named("limit-tokens")))).toEqual({ kind: "truncated", limit: "tokens" });
    const reply =
      "throw Object.assign(new Error('503'), { status: 503, headers: { 'x-rollbook-call': '1' } })";
    expect(await endingFrom(run(reply))).toMatchObject({ owner: "provider" });
  });

  it("sees no variable and no file of the package's own", async () => {
    vi.stubEnv("ROLLBOOK_HOME", "/somewhere");
    const other = await loadAgent(file(`other-${isolation}.mjs`, OBEDIENT), {
      isolation: isolation as "process",
    });
    const code =
      "return { finalState: Object.keys(process.env).filter((name) => name.startsWith('ROLLBOOK_')) }";
    expect(await other.run({ code }, context())).toEqual({ finalState: [] });
    vi.unstubAllEnvs();
  });
});

it.runIf(findBubblewrap() !== undefined)(
  "a confined agent reads its project and nothing that is hidden, however it asks, also what came later",
  async () => {
    const project = join(folder, "project");
    mkdirSync(join(project, "tasks"), { recursive: true });
    writeFileSync(join(project, "package.json"), "{}");
    writeFileSync(join(project, "prompt.txt"), "visible");
    writeFileSync(join(project, "tasks", "solutions.jsonl"), "secret");
    writeFileSync(join(folder, "elsewhere"), "secret");
    const path = join(project, "agent.mjs");
    writeFileSync(path, OBEDIENT);
    const hidden = [join(project, "tasks"), join(project, "book"), join(folder, "tasks.jsonl")];
    const agent = await loadAgent(path, {
      isolation: "bubblewrap",
      hidden,
      shared: [join(folder, "out")],
    }).catch((error: Error) => error.message);
    // A shared path must exist.
    expect(agent).toContain("out");
    mkdirSync(join(folder, "out"));
    const confined = await loadAgent(path, {
      isolation: "bubblewrap",
      hidden,
      shared: [join(folder, "out")],
    });
    mkdirSync(join(project, "book"));
    writeFileSync(join(project, "book", "pack"), "secret");
    const code = `
      const { execSync } = await import("node:child_process");
      const places = ${JSON.stringify([...hidden.map((each) => `${each}/solutions.jsonl`), join(project, "book/pack"), join(folder, "elsewhere")])};
      const roots = ["", "/proc/1/root", "/proc/self/root", "/proc/" + process.ppid + "/root", "/proc/self/fd/3/..", "/proc/1/cwd/../.."];
      let seen = "";
      for (const root of roots) for (const place of places) {
        try { seen += fs.readFileSync(root + place, "utf8") } catch {}
        try { seen += execSync("cat " + root + place, { stdio: ["ignore", "pipe", "ignore"] }) } catch {}
      }
      try { seen += execSync("grep -rs secret ${folder} /home /root /var /srv 2>/dev/null | head -c 1000") } catch {}
      fs.writeFileSync("${join(folder, "out")}/mine", "written");
      let kept = "kept"; try { fs.writeFileSync("${join(project, "prompt.txt")}", "changed"); kept = "changed" } catch {}
      const pids = fs.readdirSync("/proc").filter((name) => /^[0-9]+$/.test(name)).length;
      return { finalState: { seen, kept, own: fs.readFileSync("${join(project, "prompt.txt")}", "utf8"), pids: pids < 12 } }`;
    expect(await confined.run({ code }, context())).toEqual({
      finalState: { seen: "", kept: "kept", own: "visible", pids: true },
    });
  },
  30_000,
);

it.runIf(findBubblewrap() !== undefined)(
  "what is hidden is hidden below the folders of the system as well",
  async () => {
    const agent = await loadAgent(file("in-usr.mjs", OBEDIENT), {
      isolation: "bubblewrap",
      hidden: ["/usr/share", "/usr/bin/env"],
    });
    const code = `
      let read = 0; try { read = fs.readFileSync("/usr/bin/env").length } catch {}
      return { finalState: [fs.readdirSync("/usr/share"), read] }`;
    expect(await agent.run({ code }, context())).toEqual({ finalState: [[], 0] });
  },
  30_000,
);

it("a reward of the agent's module runs apart from its rollouts, and alone sees the label", async () => {
  const text = `
globalThis.rolloutsHere = 0;
export default {
  rollbook: "rollout-definition.v1",
  limits: { timeMs: 9000 },
  run: (payload, context) => { globalThis.rolloutsHere++; return { finalState: [payload, Object.keys(context).sort().join()] } },
  scorer: { name: "own", digest: "sha256:${"a".repeat(64)}", score: async ({ task, finalState }) => {
    if (finalState === "broken") throw new Error("no reward");
    return [{ name: "right", value: task.label === "secret" ? 1 : 0, weight: 1 }, { name: "here", value: globalThis.rolloutsHere, weight: 0 }];
  } },
};`;
  const agent = await loadAgent(file("scored.mjs", text));
  expect(agent).toMatchObject({ limits: { timeMs: 9000 }, scorer: { name: "own" } });
  const ran = (await agent.run({ a: 1 }, context())) as { finalState: Json };
  expect(ran.finalState).toEqual([
    { a: 1 },
    "attempt,log,nextTurn,rng,rolloutConfig,rolloutId,sample,seed,signal",
  ]);
  const input = {
    ...{ task: { payload: {}, label: "secret" }, ending: { kind: "terminal" as const }, claimed: null },
    ...{ metrics: {}, durationMs: 1, attempt: 1 },
  };
  expect(await agent.scorer!.score(input)).toEqual([
    { name: "right", value: 1, weight: 1 },
    { name: "here", value: 0, weight: 0 },
  ]);
  await expect(agent.scorer!.score({ ...input, finalState: "broken" })).rejects.toThrow("no reward");
});

it("a module that exits, spins down or is none is refused by name when it is loaded", async () => {
  for (const [name, text] of [
    ["exits.mjs", "process.exit(0)"],
    ["broken.mjs", "export default ("],
    ["none.mjs", "export default 1"],
    ["floating.mjs", "Promise.reject(new Error('floating')); await new Promise(() => {})"],
  ] as const)
    await expect(loadAgent(file(name, text)), name).rejects.toMatchObject({
      code: "bad-agent",
      message: expect.stringContaining(name),
    });
});

it("processes of an agent end with what was loaded, also one that spins", async () => {
  const agent = await loadAgent(file("spinner.mjs", "export default () => { for (;;) {} };"));
  const signal = AbortSignal.timeout(200);
  await endingFrom(agent.run({}, context({ signal })));
  await vi.waitFor(() => expect(running(".*spinner.mjs")).toBe(0), 5_000);
}, 20_000);

describe("the channel", () => {
  it("carries every value that an agent may return as it is", () => {
    const leaf = fc.oneof(
      fc.double(),
      fc.string(),
      fc.boolean(),
      fc.constantFrom(null, undefined, -0, Number.NaN, Number.NEGATIVE_INFINITY),
      fc.bigInt(),
      fc.float32Array(),
      fc.uint8Array(),
      fc.int32Array(),
    );
    const key = fc.oneof(fc.string(), fc.constantFrom("$", "v", "__proto__", "constructor"));
    const { value } = fc.letrec((tie) => ({
      value: fc.oneof({ depthSize: "small" }, leaf, fc.array(tie("value")), fc.dictionary(key, tie("value"))),
    }));
    fc.assert(
      fc.property(value, (each) => {
        expect(unpack(JSON.parse(JSON.stringify(pack(each))))).toEqual(each);
      }),
    );
  });

  it("lines are the same however the stream is cut, and a long one is cut and told", () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: fc.constantFrom("a", "b", "\n") })), (chunks) => {
        const lines: string[] = [];
        const splitter = lineSplitter((line) => lines.push(line), { most: 1e9 });
        for (const chunk of chunks) splitter.push(chunk);
        splitter.end();
        const whole = chunks.join("");
        expect(lines).toEqual(
          whole.endsWith("\n") || whole === "" ? whole.split("\n").slice(0, -1) : whole.split("\n"),
        );
      }),
    );
    let long = 0;
    const lines: string[] = [];
    const splitter = lineSplitter((line) => lines.push(line), { most: 4, onLong: () => long++ });
    for (const chunk of ["abc", "def", "ghi\nx\n"]) splitter.push(chunk);
    expect([lines, long > 0]).toEqual([["abcd", "x"], true]);
  });
});
