import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, test } from "vitest";
import { writeConfig } from "../../../test/support/loop-world.ts";
import { showBatch } from "../../book/batches/index.ts";
import { useBook } from "../../book/open/index.ts";
import { encodeSafetensors } from "../../policy/index.ts";
import { parseLoopConfig, runLoop } from "../index.ts";

const STAND_IN = fileURLToPath(new URL("../../../bench/climb/fast-model.mjs", import.meta.url));
const folders: string[] = [];

afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

/** Answers at once and trains nothing: what is tested is the window around it. */
function writeWorld(config: object = {}, program = STAND_IN): { folder: string; path: string } {
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
      rollouts: 32,
      samples: 8,
      workers: 8,
      learner: { kind: "grpo" },
    },
    world: {
      kind: "tokens",
      tasks: "tasks.jsonl",
      model: "model",
      family: "adder",
      python: program,
      device: "cpu",
    },
    ...config,
  });
  return { folder, path };
}

function configAt(path: string, folder: string) {
  return parseLoopConfig(readFileSync(path, "utf8"), path, folder);
}

describe("token windows", () => {
  test("a window trains from its own token batch, and the next one collects with what it released", async () => {
    const { folder, path } = writeWorld();
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
    await useBook(config.book!, { mode: "read" }, async (book) => {
      const { batch } = await showBatch(book, second!.at("scored")!.envelope.batch!);
      expect(batch.selection).toMatchObject({ family: "adder", level: "token", logprobKind: "sampling" });
      expect(batch.selection.tokenizer).toMatch(/^sha256:/);
      expect(batch.target).toEqual(first!.at("released")!.step.revision);
      expect(batch.totals.rows).toBe(32);
    });
    // Resumed, a run that is done does nothing: nothing is trained twice.
    const again = await runLoop({ config, book: config.book!, how: "resume" });
    expect(again.state.windows.map(({ final }) => final!.digest)).toEqual(
      state.windows.map(({ final }) => final!.digest),
    );
  });

  test("a server that dies within a window is started again, and the window is whole", async () => {
    const { folder } = writeWorld();
    const program = join(folder, "dying.mjs");
    const source = readFileSync(STAND_IN, "utf8").replace(
      "const digit = body.seed % 10;",
      `const digit = body.seed % 10;
       if (++answered === 10 && !existsSync(${JSON.stringify(join(folder, "died"))})) {
         writeFileSync(${JSON.stringify(join(folder, "died"))}, "");
         process.exit(1);
       }`,
    );
    writeFileSync(
      program,
      source
        .replace("import { cpSync,", "import { cpSync, existsSync,")
        .replace("const command", "let answered = 0;\nconst command"),
    );
    chmodSync(program, 0o755);
    copyFileSync(join(folder, "tasks.jsonl"), join(folder, "kept.jsonl"));
    const dying = writeWorld({ windows: 1 }, program);
    const config = configAt(dying.path, dying.folder);
    const log: string[] = [];
    const { state } = await runLoop({
      ...{ config, book: config.book!, how: "start", log: (line) => log.push(line) },
    });
    expect(log.some((line) => line.includes("the model server died"))).toBe(true);
    expect(state.windows[0]!.at("sealed")!.step.rollouts).toBe(32);
    expect(state.windows[0]!.at("scored")!.step).toMatchObject({ rows: 32, excluded: [] });
  });

  test.each([
    [{ learner: { kind: "ucb" } }, /learns from choices/],
    [{ split: { shares: [1, 0, 0] } }, /split has no effect with world.kind: tokens/],
    [{ gate: {} }, /gate has no effect/],
  ])("settings of other windows are refused: %j", (config, message) => {
    const { folder, path } = writeWorld(config);
    expect(() => configAt(path, folder)).toThrow(message);
  });

  test("a learner of tokens is refused in other worlds", () => {
    const world = { kind: "simulator", tasks: "tasks" };
    const { folder, path } = writeWorld({ world });
    expect(() => configAt(path, folder)).toThrow(/Use it with world.kind: tokens/);
  });
});
