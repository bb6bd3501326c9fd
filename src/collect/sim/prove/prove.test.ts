import { afterAll, beforeAll, describe, expect, it } from "vitest";
import * as requirement from "../../../../scripts/setup/sandbox.mjs";
import * as dockerRequirement from "../../../../scripts/setup/sandbox-docker.mjs";
import { describeNeeding } from "../../../../test/support/needs.ts";
import { startPrivateDaemon } from "../../../../test/support/private-daemon.ts";
import { RollbookError } from "../../../base/errors.ts";
import { openSandbox, type Sandbox } from "../../sandbox/index.ts";
import { DIFFICULTIES } from "../families/family.ts";
import { FAMILIES } from "../families/index.ts";
import type { SimTask, SourceFiles } from "../tasks/sim-task.ts";
import { type GeneratedTask, generateTasks } from "./generate.ts";
import { gradeHidden } from "./grade.ts";
import { factsOfMany, factsOneByOne, gatherProofs, proveTask, proveTasks } from "./prove.ts";

const JAVASCRIPT = FAMILIES.filter((family) => family.language === "javascript");
const quickjs = await openSandbox({ engine: "quickjs", workers: 2 });
afterAll(() => quickjs.close());

/** Proves one task of every family and difficulty. */
async function proveAll(sandbox: Sandbox, families = FAMILIES) {
  const reasons: string[] = [];
  const proved: GeneratedTask[] = [];
  const tasks = generateTasks({
    count: families.length * DIFFICULTIES.length,
    seed: 11,
    families,
    parallel: 12,
    prove: gatherProofs(sandbox, 4),
    onRejected: ({ reason }) => reasons.push(reason),
  });
  for await (const task of tasks) proved.push(task);
  return { proved, reasons };
}

/** A proof may reject a poor draw. A reference that fails or a start that passes would mean a broken family. */
function expectSound({ proved, reasons }: Awaited<ReturnType<typeof proveAll>>, families = FAMILIES) {
  expect(
    reasons.filter((reason) => /reference|start passes the (visible|oracle)|two verdicts/.test(reason)),
  ).toEqual([]);
  expect(proved).toHaveLength(families.length * DIFFICULTIES.length);
  for (const family of families) {
    const credits = proved
      .filter(({ task }) => task.oracle.family === family.name)
      .flatMap(({ proof }) => proof!.mutants);
    expect(credits.some((mutant) => mutant.passesVisible)).toBe(true);
    expect(credits.every((mutant) => mutant.hidden < 1)).toBe(true);
    // Partial credit must take several values, not only 0 and 1.
    expect([family.name, new Set(credits.map((mutant) => mutant.hidden)).size]).toEqual([
      family.name,
      expect.toSatisfy((n: number) => n >= 4),
    ]);
  }
}

const here = await proveAll(quickjs, JAVASCRIPT);

describe("on QuickJS", () => {
  it("tasks of every JavaScript family and difficulty are proved", () => {
    expect(JAVASCRIPT.length).toBeGreaterThanOrEqual(5);
    expectSound(here, JAVASCRIPT);
  });

  it("all solutions in one program get the verdicts of one program each", async () => {
    for (const family of JAVASCRIPT) {
      const { task, proof } = here.proved.find(
        (each) => each.task.oracle.family === family.name && each.task.oracle.difficulty === 3,
      )!;
      const alone = await factsOneByOne(task, quickjs);
      expect(alone).toEqual([proof!.start, proof!.reference, ...proof!.mutants]);
    }
  });

  const sample = here.proved.find(({ task }) => task.oracle.family === "js-implement")!.task;
  const withMutant = (files: SourceFiles): SimTask => ({
    ...sample,
    solutions: {
      ...sample.solutions,
      mutants: [...sample.solutions.mutants.slice(1), { files, flaw: "made for this test" }],
    },
  });
  const { "check.mjs": check } = sample.visible.files;

  it.each([
    [
      "the reference fails the visible tests",
      { ...sample, solutions: { ...sample.solutions, reference: { "solution.mjs": "syntax error" } } },
    ],
    [
      "the reference fails the oracle",
      { ...sample, solutions: { ...sample.solutions, reference: sample.solutions.mutants.at(-1)!.files } },
    ],
    ["a mutant passes the oracle", withMutant(sample.solutions.reference)],
    [
      "the start passes the visible tests",
      {
        ...sample,
        visible: { ...sample.visible, files: { "check.mjs": check!, ...sample.solutions.reference } },
      },
    ],
    [
      "there are fewer than four mutants",
      { ...sample, solutions: { ...sample.solutions, mutants: sample.solutions.mutants.slice(-2) } },
    ],
    [
      "no mutant passes the visible tests",
      {
        ...sample,
        solutions: { ...sample.solutions, mutants: Array(4).fill({ files: {}, flaw: "the start itself" }) },
      },
    ],
  ])("refuses a task where %s", async (reason, task) => {
    expect(await proveTask(task as SimTask, quickjs)).toEqual({ proved: false, reason });
  });

  it("a solution that takes the program down costs the tasks beside it nothing", async () => {
    const killer = withMutant({ "solution.mjs": "process.exit(0);\n" });
    const alone = await Promise.all([killer, sample].map((task) => proveTask(task, quickjs)));
    expect(await proveTasks([killer, sample], quickjs)).toEqual(alone);
    expect(alone[1]).toMatchObject({ proved: true });
  });

  it("runs again what an engine dropped, three times at most, and passes other failures on", async () => {
    const failing = (times: number, code: string): Sandbox => {
      let left = times;
      const exec: Sandbox["exec"] = (...task) =>
        left-- > 0
          ? Promise.reject(new RollbookError(code, {}, "made for this test"))
          : quickjs.exec(...task);
      return { ...quickjs, exec };
    };
    expect(await proveTask(sample, failing(2, "sandbox-engine-died"))).toMatchObject({ proved: true });
    const dead = gatherProofs(failing(99, "sandbox-engine-died"));
    await expect(dead(sample)).rejects.toMatchObject({ code: "sandbox-engine-died" });
    await expect(proveTask(sample, failing(1, "sandbox-closed"))).rejects.toMatchObject({
      code: "sandbox-closed",
    });
  });

  it("refuses a task whose verdict hangs on chance", async () => {
    const random = {
      "solution.mjs": `${sample.solutions.reference["solution.mjs"]!.replace(/return (\w+);\n}\n$/, "return Math.random() < 0.5 ? $1 : 0;\n}\n")}`,
    };
    const mutants = Array.from({ length: 12 }, () => ({ files: random, flaw: "throws a coin" }));
    const task = {
      ...sample,
      solutions: { ...sample.solutions, mutants: [...mutants, sample.solutions.mutants.at(-1)!] },
    };
    expect(await proveTask(task, quickjs)).toEqual({ proved: false, reason: "two runs gave two verdicts" });
  });
});

await describeNeeding(requirement, "on bubblewrap", () => {
  const PYTHON = FAMILIES.filter((family) => family.language === "python");
  let sandbox: Sandbox;
  beforeAll(async () => {
    sandbox = await openSandbox({ engine: "bubblewrap", workers: 3 });
  });
  afterAll(() => sandbox.close());

  it("JavaScript tasks get the verdicts of QuickJS", async () => {
    const facts = await factsOfMany(
      here.proved.map(({ task }) => task),
      sandbox,
    );
    expect(facts).toEqual(
      here.proved.map(({ proof }) => [proof!.start, proof!.reference, ...proof!.mutants]),
    );
  }, 60_000);

  it("a mutant that ends the program is not laid at the door of those after it", async () => {
    const { task: sample, proof } = here.proved.find(({ task }) => task.oracle.family === "js-implement")!;
    const leaving = { files: { "solution.mjs": "process.exit(0);\n" }, flaw: "leaves" };
    const mutants = [leaving, ...sample.solutions.mutants];
    const task = { ...sample, solutions: { ...sample.solutions, mutants } };
    const outcome = await proveTask(task, sandbox);
    expect(outcome).toMatchObject({
      proved: true,
      proof: { mutants: [{ passesVisible: true, hidden: 0 }, ...proof!.mutants] },
    });
  }, 60_000);

  it("tasks of every Python family and difficulty are proved, alone as together", async () => {
    const there = await proveAll(sandbox, PYTHON);
    expectSound(there, PYTHON);
    const firsts = there.proved.slice(0, PYTHON.length);
    const alone = await Promise.all(firsts.map(({ task }) => factsOneByOne(task, sandbox)));
    expect(alone).toEqual(firsts.map(({ proof }) => [proof!.start, proof!.reference, ...proof!.mutants]));
  }, 60_000);
});

/** A selection of the cheats in cheats.test.ts. In SQL, no cheat is a query. */
const CHEATS = {
  javascript: [
    "process.exit(0);",
    'for (let i = 0; i < 99; i++) console.log("@" + i + " true");\nJSON.stringify = () => "true";',
    'process.on("exit", () => { for (let i = 0; i < 99; i++) console.log("@" + i + " true"); });',
  ],
  python: [
    "import os\nos._exit(0)",
    'print("\\n".join(f"@{i} true" for i in range(99)))\nimport json\njson.dumps = lambda value: "true"',
  ],
};

await describeNeeding(dockerRequirement, "on Docker", () => {
  it("a task of each language is proved with the verdicts of QuickJS, and cheats score 0", async () => {
    const daemon = await startPrivateDaemon();
    try {
      const sandbox = await openSandbox({
        engine: "docker",
        workers: 1,
        docker: { socketPath: daemon.socketPath },
      });
      const families = FAMILIES.filter((family) =>
        ["js-bugfix", "py-implement", "sql-query"].includes(family.name),
      );
      for await (const { task } of generateTasks({ count: 3, seed: 11, families })) {
        const outcome = await proveTask(task, sandbox);
        expect(outcome).toMatchObject({ proved: true, proof: { engine: "docker" } });
        for (const cheat of CHEATS[task.visible.check.kind as "python"])
          expect(await gradeHidden(task, { [task.visible.editable[0]!]: cheat }, sandbox)).toMatchObject({
            passed: 0,
          });
        if (task.visible.check.kind !== "javascript") continue;
        const alone = await proveTask(task, quickjs);
        expect({ ...outcome, proof: { ...(outcome as { proof: object }).proof, engine: "quickjs" } }).toEqual(
          alone,
        );
      }
      await sandbox.close();
    } finally {
      await daemon.stop();
    }
  }, 120_000);
});
