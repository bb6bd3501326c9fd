import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Worker } from "node:worker_threads";
import { describe, expect, it, vi } from "vitest";
import { MAIN } from "../../bench/support/build.ts";
import { systemClock } from "../../src/base/clock.ts";
import { useBook } from "../../src/book/open/index.ts";
import { GateVerdict } from "../../src/contract/index.ts";
import { readRun } from "../../src/loop/read-run.ts";
import { readRecord } from "../../src/store/index.ts";
import { Cli } from "../support/cli.ts";
import { afterWindow, statusOf, withLoop } from "../support/loop-runs.ts";
import { LOOP, SMALL, UNEQUAL, writeConfig } from "../support/loop-world.ts";
import { rollBack } from "../support/rolled-back.ts";

/** A gate that no policy passes. */
const STRICT = { ...UNEQUAL, gate: { alpha: 1e-12 } };

describe("rollbook run on the simulator", () => {
  it("takes the served policy's exact value from the first behaviour towards the optimum in one window", async () => {
    const { cli, config } = withLoop({ ...LOOP, windows: 1 });
    const { code, out, err } = await cli.run(`run start --config ${config}`);
    expect(err).toMatch(/^made a new book at \S+$/m);
    const released = (await cli.json("artifact ls --revisions")).filter((each) => each.released);
    expect(released.map(({ id }) => id)).toEqual(["loop-w1"]);
    expect(await cli.ok("artifact ls --revisions")).toMatch(
      /KIND .*RELEASED *\n(.*\n)*loop-w1 +\S+ +policy .* latest release *\n(.*\n)*router-\w{12} +\S+ +router /,
    );
    expect([code, err]).toEqual([0, expect.stringContaining("window 1 of 1: ")]);
    expect(err).not.toContain("warning");
    expect(out).toMatch(/WINDOW +STATE +ROLLOUTS .* OPTIMUM/);
    const { windows, digest, ended, running } = await statusOf(cli, `status --config ${config}`);
    expect([ended, running, digest?.startsWith("sha256:")]).toEqual([1, false, true]);
    const { state, optimum, behaviourValue, servedValue, estimate } = windows[0]!;
    expect(state).toBe("released");
    // At least half of the way from the behaviour policy to the optimum.
    expect(servedValue!).toBeGreaterThan((behaviourValue! + optimum!) / 2);
    expect(servedValue!).toBeLessThanOrEqual(optimum!);
    expect(estimate!.low).toBeLessThan(servedValue!);
    expect(estimate!.high).toBeGreaterThan(servedValue!);
    await cli.ok("verify");
  }, 240_000);

  it("refuses to resume what never began and to start twice, resumes what is done without a change, and refuses another configuration", async () => {
    const { cli, config } = withLoop(SMALL);
    for (const words of ["run resume", `pack seal --out ${join(cli.folder, "pack")}`])
      expect(await cli.run(`${words} --config ${config}`), words).toMatchObject({
        code: 1,
        err: expect.stringMatching(/has not begun in .*`rollbook run start --config .*\[run-not-begun\]/),
      });
    await cli.ok(`run start --config ${config}`);
    const typo = writeConfig(cli.folder, { ...SMALL, run: "lopo" }, "typo.yaml");
    const never = await cli.run(`run resume --config ${typo}`);
    expect([never.code, never.err]).toEqual([
      1,
      expect.stringMatching(
        /^error: the run lopo has not begun in .*`rollbook run start --config \S+typo.yaml`.*\[run-not-begun\]\n$/,
      ),
    ]);
    expect(existsSync(join(cli.book, "loop", "lopo"))).toBe(false);
    // With --book, the suggested commands name the same book.
    const elsewhere = `--config ${config} --book ${join(cli.folder, "elsewhere")}`;
    expect(await cli.ok(`run status ${elsewhere}`)).toContain(
      `\`rollbook run start ${elsewhere}\` begins it`,
    );
    expect((await cli.run(`run start --config ${config} --book ${cli.book}`)).err).toContain(
      `\`rollbook run status --config ${config} --book ${cli.book}\``,
    );
    const done = await statusOf(cli, `status --config ${config}`);
    const folder = join(cli.book, "loop", "loop", "window-1");
    expect(done.windows[0]).toMatchObject({ checkpoints: [{ revision: "loop-w1", folder }] });
    expect(await cli.ok(`run status --config ${config}`)).toMatch(
      /^checkpoint of loop-w2( \(served after window 2\))?: \S+window-2$/m,
    );
    expect(await cli.run(`run start --config ${config}`)).toMatchObject({
      code: 1,
      err: expect.stringMatching(
        /^error: the run loop has ended in .*`rollbook run status --config \S+loop.yaml`\. To extend it, raise windows: .*\[run-exists\]/,
      ),
    });
    expect(await statusOf(cli, `resume --config ${config}`)).toEqual(done);
    writeConfig(cli.folder, { ...SMALL, workers: 2 });
    expect(await statusOf(cli, `resume --config ${config}`)).toEqual(done);
    const fewer = writeConfig(cli.folder, { ...SMALL, windows: 1 }, "fewer.yaml");
    expect(await cli.run(`run resume --config ${fewer}`)).toMatchObject({
      code: 1,
      err: expect.stringMatching(
        /^error: the configuration sets windows: 1, but window 2 .* Set windows: 2 or more, .*--config \S+fewer.yaml`\. \[loop-changed\]\n$/,
      ),
    });
    expect(await cli.ok(`run status --config ${fewer}`)).toMatch(
      /^loop: window 2 has begun, but the configuration sets windows: 1\. Set windows: 2 or more, then run `rollbook run resume --config \S+fewer\.yaml`\.$/m,
    );
    const other = writeConfig(cli.folder, { ...SMALL, seed: 1, gate: { alpha: 0.01 } }, "other.yaml");
    for (const how of ["resume", "start"]) {
      const changed = await cli.run(`run ${how} --config ${other}`);
      expect([changed.code, changed.err]).toEqual([
        1,
        expect.stringMatching(/has changed since it began in \S+: .*seed.*\[loop-changed\]/),
      ]);
      expect(changed.err).toContain("gate.alpha");
      expect(changed.err).not.toContain("windows");
    }
  }, 60_000);

  it("seals every window in one thread, which ends with the run", async () => {
    const { cli, config } = withLoop(SMALL);
    const threads: Worker[] = [];
    // Only sealing threads have this limit.
    const isSealing = ({ resourceLimits }: Worker) => resourceLimits?.maxYoungGenerationSizeMb === 96;
    const onWorker = (worker: Worker) => void (isSealing(worker) && threads.push(worker));
    process.on("worker", onWorker);
    try {
      expect((await statusOf(cli, `start --config ${config}`)).ended).toBe(2);
    } finally {
      process.off("worker", onWorker);
    }
    // A thread that has ended has the number -1.
    expect(threads.map(({ threadId }) => threadId)).toEqual([-1]);
  }, 60_000);

  it("keeps the old policy and goes on where the gate always refuses", async () => {
    const { resume } = await afterWindow("strict", STRICT);
    const { windows } = await resume(2);
    expect(windows.map(({ state, serves }) => [state, serves])).toEqual([
      ["kept", "behaviour"],
      ["kept", "behaviour"],
    ]);
    expect(windows[0]!.reasons![0]).toContain("worse");
    expect(windows[1]!.servedValue).toBe(windows[0]!.behaviourValue);
  }, 240_000);

  it("stops when asked, is run by one process at a time, and ends with the digest of a run never stopped", async () => {
    const whole = withLoop(SMALL);
    const expected = await statusOf(whole.cli, `start --config ${whole.config}`);
    const { cli, config } = withLoop(SMALL);
    const running = cli.run(`run start --config ${config}`);
    while (!(await statusOf(cli, `status --config ${config}`)).running) await new Promise(setImmediate);
    const second = await cli.run(`run resume --config ${config}`);
    expect([second.code, second.err]).toEqual([1, expect.stringContaining("[run-busy]")]);
    expect(second.err).toContain(`ask it to stop with \`rollbook run stop --config ${config}\`.`);
    expect(await cli.ok(`run stop --config ${config}`)).toBe("loop: stopped\n");
    const stopped = await running;
    const told = `continue with \`rollbook run resume --config ${config}\`\n`;
    expect([stopped.code, stopped.err]).toEqual([0, expect.stringContaining(told)]);
    expect(stopped.err).toMatch(/^run loop: stopped after [01] of 2 windows; /m);
    expect(await cli.ok(`run stop --config ${config}`)).toBe("loop: no process runs it\n");
    const { windows, collected } = await statusOf(cli, `status --config ${config}`);
    if (windows.at(-1)?.state === "collecting")
      expect(collected).toMatchObject({ window: windows.length, total: windows.at(-1)!.rollouts });
    expect((await statusOf(cli, `start --resume --config ${config}`)).digest).toBe(expected.digest);
  }, 60_000);

  it("has one run digest, whatever the configuration plans, and it leads to all records of the run", async () => {
    const { cli, config } = withLoop(SMALL);
    const { digest } = await statusOf(cli, `start --config ${config}`);
    const fewer = writeConfig(cli.folder, { ...SMALL, windows: 1 }, "fewer.yaml");
    expect((await statusOf(cli, `status --config ${fewer}`)).digest).toBe(digest);
    const [{ trust, counts, reached }] = await cli.json(`verify ${digest} --require-trusted`);
    expect(trust).toMatchObject({ artifacts: 24, signed: 24 });
    expect([reached.rollouts, reached.batches.length]).toEqual([24, 2]);
    expect(counts).toMatchObject({ "rollbook.trainer-batch.v1": 2, "rollbook.gate-verdict.v1": 2 });
  }, 60_000);

  it("makes another run compare with its release, or say that it does not", async () => {
    const { cli, config } = await afterWindow("unequal", UNEQUAL);
    const { windows: before } = await statusOf(cli, `status --config ${config}`);
    expect(before[0]).toMatchObject({ state: "released", serves: "loop-w1" });
    // The comparison is the same with any number of rollouts.
    const few = { ...UNEQUAL, rollouts: 12, windows: 1 };
    const second = writeConfig(cli.folder, { ...few, run: "second", seed: 1 }, "second.yaml");
    const { err, out } = await cli.run(`run start --json --config ${second}`);
    expect(err).toContain(
      "this book serves loop-w1. The run second releases a policy only if it is not worse than loop-w1",
    );
    expect(JSON.parse(out).windows[0]).toMatchObject({ baseline: "loop-w1" });
    const verdict = await verdictOf(cli.book, "second", 1);
    expect(verdict.baseline).toMatchObject({ kind: "policy", revision: { id: "loop-w1" } });
    await cli.ok("verify");
    const others = { ...few, run: "third", split: { ...UNEQUAL.split, unit: "session" } };
    const third = await cli.run(`run start --config ${writeConfig(cli.folder, others, "third.yaml")}`);
    expect([third.code, third.err]).toEqual([
      ...[1, expect.stringMatching(/split by decision, those of this run by session.*\[other-release\]/s)],
    ]);
    const stated = { ...others, gate: { baseline: "behaviour" } };
    const told = await cli.run(`run start --config ${writeConfig(cli.folder, stated, "third.yaml")}`);
    expect([told.code, told.err]).toEqual([
      0,
      expect.stringContaining("the run third does not compare with it"),
    ]);
  }, 60_000);

  it("collects with what the book serves after a rollback of its own release, and compares with it", async () => {
    const { cli, resume } = await afterWindow("unequal", UNEQUAL);
    const { windows } = await resume(2);
    expect(windows.map(({ serves }) => serves)).toEqual(["loop-w1", "loop-w2"]);
    await rollBack(cli.book, (await verdictOf(cli.book, "loop", 2)).candidates[0]!.router.digest);
    const third = await resume(3);
    expect(third.windows[2]).toMatchObject({ collectedBy: "loop-w1", baseline: "loop-w1" });
    const { baseline } = await verdictOf(cli.book, "loop", 3);
    expect(baseline).toMatchObject({ kind: "policy", revision: { id: "loop-w1" } });
    await cli.ok("verify");
  }, 60_000);

  it("compares with a policy of its own that it refused and a gate by hand passed", async () => {
    const { cli, config, resume } = await afterWindow("strict", STRICT);
    const { windows } = await statusOf(cli, `status --config ${config}`);
    expect(windows[0]).toMatchObject({ state: "kept", serves: "behaviour" });
    const candidate = join(cli.book, "loop", "loop", "window-1");
    await cli.ok(
      `gate --candidate ${candidate} --baseline behaviour --quality-only --exploration 0.02 --epsilon-quality 0.3`,
    );
    const second = await resume(2);
    expect(second.windows[1]).toMatchObject({ collectedBy: "loop-w1", baseline: "loop-w1" });
    const { baseline } = await verdictOf(cli.book, "loop", 2);
    expect(baseline).toMatchObject({ kind: "policy", revision: { id: "loop-w1" } });
  }, 60_000);

  it("tells if a rollback has left no release, and compares with the last one", async () => {
    const { cli, config } = await afterWindow("unequal", UNEQUAL);
    await rollBack(cli.book, (await verdictOf(cli.book, "loop", 1)).candidates[0]!.router.digest);
    writeConfig(cli.folder, { ...UNEQUAL, windows: 2 });
    const { code, err } = await cli.run(`run resume --config ${config}`);
    expect([code, err]).toEqual([
      0,
      expect.stringMatching(
        /this book serves no release\. The run loop compares with loop-w1 [\s\S]*loop-w1 was rolled back\. The window collects with the configured behaviour/,
      ),
    ]);
    const { windows } = await statusOf(cli, `status --config ${config}`);
    expect(windows[1]).toMatchObject({ collectedBy: "behaviour" });
    const { baseline } = await verdictOf(cli.book, "loop", 2);
    expect(baseline).toMatchObject({ kind: "policy", revision: { id: "loop-w1" } });
  }, 60_000);
});

function verdictOf(root: string, run: string, window: number): Promise<GateVerdict> {
  return useBook(root, { mode: "read" }, async (book) => {
    const { windows } = await readRun(book, run);
    return readRecord(book.store, GateVerdict, windows[window - 1]!.need("judged").envelope.verdict!);
  });
}

describe("a run that compares several learners", () => {
  it("releases the best that passes, tells another run of it, and does the same after a kill and from the book alone", async () => {
    const { learner: _, ...shared } = UNEQUAL;
    const several = {
      ...{ ...shared, windows: 2, replay: "replay" },
      learners: [{ kind: "ucb" }, { kind: "linucb", alpha: 0.1 }, { kind: "ppo", steps: 1000 }],
    };
    const { cli, config } = withLoop(several);
    const whole = await statusOf(cli, `start --config ${config}`);
    const [first] = whole.windows;
    expect(first!.candidates!.map(({ learner, revision }) => [learner, revision])).toEqual([
      ["ucb", "loop-w1-ucb"],
      ["linucb", "loop-w1-linucb"],
      ["ppo", "loop-w1-ppo"],
    ]);
    const passed = first!.candidates!.filter(({ outcome }) => outcome === "pass");
    expect(passed.map(({ revision }) => revision)).toContain(first!.serves);
    const served = first!.candidates!.find(({ revision }) => revision === first!.serves)!;
    expect([served.value, served.estimate]).toEqual([first!.servedValue, first!.estimate]);
    for (const { outcome, reasons } of first!.candidates!)
      expect(reasons!.length > 0).toBe(outcome === "refuse");
    expect(await cli.ok(`replay validate ${join(cli.folder, "replay")}`)).toContain("valid");
    await cli.ok("verify");

    const again = withLoop({ ...several, windows: 1 });
    await startAndKill(again.cli, again.config);
    const { windows: before } = await statusOf(again.cli, `resume --config ${again.config}`);
    expect(before[0]).toMatchObject({ state: "released", serves: first!.serves });
    const second = writeConfig(
      again.cli.folder,
      { ...SMALL, world: UNEQUAL.world, run: "second", windows: 1 },
      "second.yaml",
    );
    const { err } = await again.cli.run(`run start --config ${second}`);
    expect(err).toContain(`this book serves ${first!.serves}. The run second releases a policy only if`);
    for (const gone of [join(again.cli.book, "loop"), join(again.cli.folder, "replay")])
      rmSync(gone, { recursive: true });
    const longer = writeConfig(again.cli.folder, several);
    const { windows, digest } = await statusOf(again.cli, `resume --config ${longer}`);
    // Only the checkpoints that the run needs are made again.
    expect({ ...windows[0]!, checkpoints: [] }).toEqual({ ...before[0]!, checkpoints: [] });
    expect(windows[1]).toMatchObject({ collectedBy: first!.serves });
    expect(digest).toBe(whole.digest);
  }, 120_000);
});

/** Kills a process of the loop while it collects. `npm run campaign -- loop-crash` kills at random moments. */
async function startAndKill({ home, book }: Cli, config: string): Promise<void> {
  const child = spawn(process.execPath, [MAIN, "run", "start", "--config", config], {
    env: { ...process.env, ROLLBOOK_HOME: home, ROLLBOOK_BOOK: book },
    stdio: ["ignore", "ignore", "pipe"],
  });
  const closed = once(child, "close");
  let said = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    said += text;
  });
  await vi.waitFor(() => expect(said).toContain("collecting, 72 rollouts"), 30_000);
  await sleep(300);
  child.kill("SIGKILL");
  await closed;
  expect([child.signalCode, said]).toEqual(["SIGKILL", expect.not.stringContaining("scored")]);
}

describe("a world with generate", () => {
  it("makes its tasks at the start, and a resumed run takes them as they are", async () => {
    const generate = { count: 6, seed: 7, families: ["js-bugfix"], difficulties: [1, 2] };
    const world = { kind: "simulator", tasks: "made", generate, engine: "quickjs" };
    const cli = new Cli({ clock: systemClock });
    const small = { ...SMALL, world, windows: 1, rollouts: 6 };
    // A run killed during generation leaves a partial folder with the suffix `.part`.
    mkdirSync(join(cli.folder, "made.part"));
    writeFileSync(join(cli.folder, "made.part", "tasks.jsonl"), "half");
    const config = writeConfig(cli.folder, small);
    let isOver = false;
    const starting = statusOf(cli, `start --config ${config}`).finally(() => {
      isOver = true;
    });
    const untilItRuns = async () => {
      while (!isOver && !(await statusOf(cli, `status --config ${config}`)).running)
        await new Promise(setImmediate);
    };
    // A start that fails ends the wait with its reason.
    await Promise.race([starting, untilItRuns()]);
    // The run is locked while it generates: a second start would write to the same folder.
    expect(existsSync(join(cli.folder, "made"))).toBe(false);
    const second = await cli.run(`run start --config ${config}`);
    expect([second.code, second.err]).toEqual([1, expect.stringContaining("[run-busy]")]);
    const first = await starting;
    expect([first.ended, existsSync(join(cli.folder, "made.part"))]).toEqual([1, false]);
    const made = readFileSync(join(cli.folder, "made", "tasks.jsonl"), "utf8");
    expect(made.trim().split("\n")).toHaveLength(6);
    const longer = writeConfig(cli.folder, { ...small, windows: 2 });
    expect((await statusOf(cli, `resume --config ${longer}`)).ended).toBe(2);
    expect(readFileSync(join(cli.folder, "made", "tasks.jsonl"), "utf8")).toBe(made);
  }, 240_000);
});
