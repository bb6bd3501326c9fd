import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, test } from "vitest";
import { Cli } from "../../../test/support/cli.ts";
import { writeConfig } from "../../../test/support/loop-world.ts";
import { showBatch } from "../../book/batches/index.ts";
import { useBook } from "../../book/open/index.ts";
import { encodeSafetensors } from "../../policy/index.ts";
import { type LoopConfig, parseLoopConfig, runLoop } from "../index.ts";

/** Rollouts of a window: four samples of each of four tasks. */
const ROLLOUTS = 16;
/** The stand-in answers at once and trains nothing: the test covers the window around it. */
const STAND_IN = fileURLToPath(new URL("../../../test/support/stand-in-model.mjs", import.meta.url));
const folders: string[] = [];

afterEach(() => {
  delete process.env.STAND_IN;
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

function writeWorld(config: object = {}): { folder: string; path: string } {
  const folder = mkdtempSync(join(tmpdir(), "rollbook-tokens-"));
  folders.push(folder);
  mkdirSync(join(folder, "model"));
  const weights = encodeSafetensors({
    tensors: { w: { shape: [4], data: Float32Array.of(1, 2, 3, 4) } },
    metadata: {},
  });
  writeFileSync(join(folder, "model", "model.safetensors"), weights);
  writeFileSync(join(folder, "model", "config.json"), "{}");
  writeFileSync(join(folder, "model", "characters.json"), '{"symbols":"0123456789+="}');
  const rows = Array.from({ length: 8 }, (_, i) => ({
    ...{ prompt: `${i}+0=`, label: `${i}0`, metadata: { question: `${i}+0=` } },
  }));
  writeFileSync(join(folder, "tasks.jsonl"), rows.map((row) => JSON.stringify(row)).join("\n"));
  const path = writeConfig(folder, {
    ...{
      run: "climb",
      book: "book",
      windows: 2,
      rollouts: ROLLOUTS,
      samples: 4,
      workers: 8,
      learner: { kind: "grpo" },
    },
    world: {
      kind: "tokens",
      tasks: "tasks.jsonl",
      model: "model",
      family: "adder",
      python: STAND_IN,
      device: "cpu",
    },
    ...config,
  });
  return { folder, path };
}

function configAt(path: string, folder: string) {
  return parseLoopConfig(readFileSync(path, "utf8"), path, folder);
}

/** Requests to trainer or server, from the notes that the stand-in writes to the world's folder. */
function notesIn(folder: string, name: "trained" | "loaded") {
  return readFileSync(join(folder, `${name}.jsonl`), "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
}

async function start(config: LoopConfig, how: "start" | "resume" = "start") {
  const log: string[] = [];
  const ran = await runLoop({ config, book: config.book!, how, log: (line) => log.push(line) });
  return { ...ran, log };
}

describe("token windows", () => {
  test("a window trains from its own token batch, the next one collects with what it released, and verify finds one flipped bit", async () => {
    const { folder, path } = writeWorld();
    process.env.STAND_IN = folder;
    const config = configAt(path, folder);
    const log: string[] = [];
    const { state, done } = await runLoop({
      ...{ config, book: config.book!, how: "start", log: (line) => log.push(line) },
    });
    expect(done).toBe(true);
    const [first, second] = state.windows;
    expect(first!.at("planned")!.step.router.id).toBe("climb-base");
    expect(second!.at("planned")!.step.router).toEqual(first!.at("released")!.step.revision);
    expect(log.filter((line) => line.includes("rollouts in"))).toHaveLength(2);
    // Each revision is loaded once: the server loads new weights while they are sealed, and the next window finds them
    // loaded.
    expect(notesIn(folder, "loaded").map(({ revision }) => revision)).toEqual(["climb-base", "climb-w1"]);
    await useBook(config.book!, { mode: "read" }, async (book) => {
      const { batch } = await showBatch(book, second!.at("scored")!.envelope.batch!);
      expect(batch.selection).toMatchObject({ family: "adder", level: "token", logprobKind: "sampling" });
      expect(batch.selection.tokenizer).toMatch(/^sha256:/);
      expect(batch.target).toEqual(first!.at("released")!.step.revision);
      expect(batch.totals.rows).toBe(ROLLOUTS);
    });
    // The trainer is another program and writes checkpoints there with its own file modes.
    expect(statSync(join(config.book!, "loop", "climb")).mode & 0o777).toBe(0o700);
    // Resuming a finished run does nothing, so nothing is trained twice.
    const again = await runLoop({ config, book: config.book!, how: "resume" });
    expect(again.state.windows.map(({ final }) => final!.digest)).toEqual(
      state.windows.map(({ final }) => final!.digest),
    );
    // From the last revision to the tasks, down to one bit of a log-probability.
    const cli = new Cli();
    const whole = await cli.run(`verify climb-w2 --book ${config.book} --json`);
    expect([whole.code, whole.err]).toEqual([0, ""]);
    expect(whole.out).toContain("rollbook.task.v1");
    flipLogprob(config.book!);
    const broken = await cli.run(`verify climb-w2 --book ${config.book}`);
    expect(broken.code).toBe(1);
    expect(broken.out + broken.err).toMatch(/digest-mismatch|corrupt/);
  });

  test("a server that dies within a window is started again, and the window is whole", async () => {
    const { folder, path } = writeWorld({ windows: 1 });
    process.env.STAND_IN = folder;
    writeFileSync(join(folder, "serving"), "10");
    const { state, log } = await start(configAt(path, folder));
    expect(log.some((line) => line.includes("the model server died"))).toBe(true);
    expect(state.windows[0]!.at("sealed")!.step.rollouts).toBe(ROLLOUTS);
    expect(state.windows[0]!.at("scored")!.step).toMatchObject({ rows: ROLLOUTS, excluded: [] });
  });

  test("a trainer that dies after its checkpoint stops the run, and the resumed window is not trained twice", async () => {
    const { folder, path } = writeWorld();
    process.env.STAND_IN = folder;
    writeFileSync(join(folder, "training"), "1");
    const config = configAt(path, folder);
    await expect(start(config)).rejects.toThrow(/the trainer has ended \(exit 1\).*rollbook run resume/);
    const { state, done } = await start(config, "resume");
    expect(done).toBe(true);
    const trained = notesIn(folder, "trained");
    expect(trained.map(({ out }) => out.split("/").at(-1))).toEqual(["window-1", "window-2"]);
    expect(new Set(trained.map(({ batch }) => batch)).size).toBe(2);
    expect(state.windows.map((each) => each.at("scored")!.envelope.batch)).toEqual(
      trained.map(({ batch }) => batch),
    );
  });

  test("an asynchronous window collects with an older revision, and its stale rows are trained within the drift", async () => {
    const { folder, path } = writeWorld({ windows: 3, mode: "asynchronous", maxDrift: 2 });
    process.env.STAND_IN = folder;
    const { state, done, log } = await start(configAt(path, folder));
    expect(done).toBe(true);
    const trained = notesIn(folder, "trained");
    expect(trained).toHaveLength(3);
    for (const [i, { target, from, sources }] of trained.entries()) {
      const collected = state.windows[i]!.at("planned")!.step.router;
      expect(from.map(({ digest }: { digest: string }) => digest)).toEqual([collected.digest]);
      // The trainer gets the older weights, to recompute the log-probabilities of their samples.
      expect(sources.map(({ digest }: { digest: string }) => digest)).toEqual(
        collected.digest === target.digest ? [] : [collected.digest],
      );
    }
    // All windows but the first begin before the previous window has trained.
    expect(trained.filter(({ sources }) => sources.length === 1).length).toBeGreaterThan(0);
    for (const window of state.windows)
      expect(window.at("scored")!.step).toMatchObject({ rows: ROLLOUTS, excluded: [] });
    expect(log.some((line) => line.includes(`${ROLLOUTS} stale rows`))).toBe(true);
  });

  test.each([
    [{ learner: { kind: "ucb" } }, /learns from choices/],
    [{ split: { shares: [1, 0, 0] } }, /split has no effect with world.kind: tokens/],
    [{ gate: {} }, /gate has no effect/],
    [
      { mode: "asynchronous", maxDrift: 2, freshness: { drift: 1 } },
      /freshness.drift: 1 is below maxDrift, 2/,
    ],
  ])("settings that do not fit are refused: %j", (config, message) => {
    const { folder, path } = writeWorld(config);
    expect(() => configAt(path, folder)).toThrow(message);
  });

  test("a learner of tokens is refused in other worlds", () => {
    const world = { kind: "simulator", tasks: "tasks" };
    const { folder, path } = writeWorld({ world });
    expect(() => configAt(path, folder)).toThrow(/Use it with world.kind: tokens/);
  });
});

/** Flips the lowest bit of the first f32 column that holds log-probabilities (docs/reference/store.md has the format). */
function flipLogprob(book: string): void {
  for (const name of readdirSync(book, { recursive: true, encoding: "utf8" })) {
    if (!name.endsWith(".pack")) continue;
    const path = join(book, name);
    const bytes = readFileSync(path);
    const column = Buffer.from(Float32Array.of(-0.5, -0.25, -0.125).buffer);
    const at = bytes.indexOf(column);
    if (at < 0) continue;
    bytes[at]! ^= 1;
    writeFileSync(path, bytes);
    return;
  }
  throw new Error(`${book} has no pack with the log-probabilities of the stand-in`);
}
