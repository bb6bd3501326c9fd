import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { handTasks } from "../../../../test/support/sim-tasks.ts";
import { readRow } from "../../rollout/work/rows.ts";
import { familyPackages } from "./family-packages.ts";
import { type GeneratedTask, generateTasks } from "./generate.ts";
import {
  META_FILE,
  PACKAGES_FILE,
  readTaskFolder,
  readTasks,
  SOLUTIONS_FILE,
  TASKS_FILE,
  writeTasks,
} from "./task-files.ts";

const drawn: GeneratedTask[] = [];
for await (const each of generateTasks({ count: 12, seed: 3 })) drawn.push(each);
const proof = handTasks(1)[0]!.proof;
const tasks = drawn.map(({ task }) => ({ task, proof: { ...proof, task: task.digest } }));

describe("a folder of tasks", () => {
  let folder: string;
  const edit = (name: string, change: (text: string) => string) => {
    const path = join(folder, name);
    writeFileSync(path, change(readFileSync(path, "utf8")));
  };
  const refusal = () => {
    try {
      readTasks(folder);
    } catch (error) {
      return error as { code: string; message: string };
    }
    return undefined;
  };

  beforeEach(() => {
    folder = join(mkdtempSync(join(tmpdir(), "rollbook-tasks-")), "tasks");
    writeTasks(folder, tasks, { seed: 3n });
  });
  afterEach(() => rmSync(join(folder, ".."), { recursive: true, force: true }));

  it("comes back as it was written, with what it is made of", () => {
    expect(readTasks(folder)).toEqual(tasks);
    const { meta } = readTaskFolder(folder);
    expect(meta).toMatchObject({ seed: "3", tasks: 12, engine: proof.engine, generatorVersion: 1 });
    expect(Object.keys(meta.packages)).toHaveLength(10);
    expect(meta.packages["sim.js-bugfix@1"]).toMatch(/^sha256:/);
    expect(readdirSync(folder).sort()).toEqual([SOLUTIONS_FILE, TASKS_FILE, META_FILE, PACKAGES_FILE].sort());
  });

  it("holds rows for launch: the agent gets the visible part and nothing else, the reward the oracle", () => {
    const [line] = readFileSync(join(folder, TASKS_FILE), "utf8").split("\n");
    const row = readRow(JSON.parse(line!));
    const { task } = tasks[0]!;
    expect(row).toEqual({ payload: task.visible, prompt: task.visible.statement, label: task.oracle });
    expect(line).not.toContain(JSON.stringify(task.solutions.mutants[0]!.flaw));
  });

  it("is never overwritten, not even half of it", () => {
    expect(() => writeTasks(folder, tasks)).toThrow(/already exists/);
    rmSync(join(folder, META_FILE));
    expect(() => writeTasks(folder, tasks)).toThrow(/already exists/);
  });

  it.each([
    [
      "was not finished",
      () => rmSync(join(folder, META_FILE)),
      "no-tasks",
      /not a finished folder of(?!.*[Rr]emove)/,
    ],
    ["lost its tasks", () => rmSync(join(folder, TASKS_FILE)), "bad-task", /tasks\.jsonl cannot be read/],
    [
      "is cut off",
      () => edit(TASKS_FILE, (text) => text.slice(0, -100)),
      "bad-task",
      /tasks\.jsonl:12 .*cut off.* 12 tasks/,
    ],
    [
      "misses a line",
      () => edit(SOLUTIONS_FILE, (text) => text.slice(text.indexOf("\n") + 1)),
      "bad-task",
      /solutions\.jsonl:11 .* 12 tasks/,
    ],
    [
      "asks something else",
      () => edit(TASKS_FILE, (text) => text.replace('"statement":"', '"statement":"Not: ')),
      "bad-task",
      /tasks\.jsonl:\d+ is not the task that solutions\.jsonl/,
    ],
    [
      "has an easier oracle",
      () => edit(TASKS_FILE, (text) => text.replace(/"difficulty":\d/, '"difficulty":0')),
      "bad-task",
      /one of the two was changed/,
    ],
    [
      "has two lines exchanged",
      () =>
        edit(TASKS_FILE, (text) =>
          text.split("\n").toSpliced(1, 0, text.split("\n")[2]!).toSpliced(3, 1).join("\n"),
        ),
      "bad-task",
      /tasks\.jsonl:2 is not the task/,
    ],
    [
      "has another mutant",
      () => edit(SOLUTIONS_FILE, (text) => text.replace('"flaw":"', '"flaw":"quite ')),
      "digest-mismatch",
      /solutions\.jsonl is .* it was edited/,
    ],
    [
      "has another proof",
      () => edit(SOLUTIONS_FILE, (text) => text.replace('"hidden":0.5', '"hidden":0.6')),
      "digest-mismatch",
      /it was edited/,
    ],
    [
      "has another prompt",
      () => edit(TASKS_FILE, (text) => text.replace(/"prompt":"/, '"prompt":"x')),
      "digest-mismatch",
      /tasks\.jsonl is/,
    ],
    [
      "is no JSON",
      () => edit(TASKS_FILE, (text) => text.replace("{", "{{")),
      "bad-task",
      /tasks\.jsonl:1 is not JSON/,
    ],
    [
      "has another package",
      () => edit(PACKAGES_FILE, (text) => text.replace('"maxTurns":12', '"maxTurns":13')),
      "digest-mismatch",
      /packages\.jsonl does not hold the packages/,
    ],
    [
      "claims another package",
      () => edit(META_FILE, (text) => text.replace(/("sim\.js-bugfix@1":"sha256:)./, "$1x")),
      "digest-mismatch",
      /packages\.jsonl does not hold the packages/,
    ],
    ["has another description", () => edit(META_FILE, () => "{}"), "bad-task", /does not describe/],
  ])("that %s is refused, and the message says where", (_, spoil, code, message) => {
    spoil();
    expect(refusal()).toMatchObject({ code, message: expect.stringMatching(message) });
  });

  it("without proofs can be launched but not simulated", () => {
    const other = join(folder, "..", "unproved");
    writeTasks(other, drawn);
    expect(readTaskFolder(other)).toMatchObject({ meta: { engine: null, seed: null }, tasks: drawn });
    expect(() => readTasks(other)).toThrow(/no proof.*--no-prove/);
  });
});

describe("the package of a family", () => {
  const all = drawn.map(({ task }) => task);

  it("covers every task and every oracle of the family, and nothing of another", () => {
    const [before] = familyPackages(all);
    expect(before!.record.key).toBe("sim.grid-planning@1");
    const changed = all.map((task) =>
      task.oracle.family === "grid-planning" ? { ...task, oracle: { ...task.oracle, difficulty: 9 } } : task,
    );
    const digests = familyPackages(changed).map((each, i) => each.digest === familyPackages(all)[i]!.digest);
    expect(digests).toEqual([false, ...Array(9).fill(true)]);
    expect(familyPackages(all.slice(0, 11)).map((each) => each.digest)).not.toEqual(
      familyPackages(all).map((each) => each.digest),
    );
  });
});
