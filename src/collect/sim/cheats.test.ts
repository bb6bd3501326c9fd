/** Attempts of handed-in files to get a better grade than their answers deserve. No attempt earns anything. */
import { afterAll, describe, expect, it } from "vitest";
import * as requirement from "../../../scripts/setup/sandbox.mjs";
import { describeNeeding } from "../../../test/support/needs.ts";
import { openSandbox, type Sandbox } from "../sandbox/index.ts";
import { familyNamed } from "./families/index.ts";
import { generateTasks } from "./prove/generate.ts";
import { gradeHidden } from "./prove/grade.ts";
import type { SimTask, SourceFiles } from "./tasks/sim-task.ts";

/** Finds a task for which no output of the cheats below answers a hidden case. */
async function taskOf(family: string): Promise<SimTask> {
  for await (const { task } of generateTasks({
    count: 20,
    seed: 5,
    families: [familyNamed(family)],
    difficulties: [3],
  })) {
    const { grading } = task.oracle;
    if (grading.kind === "plan" || grading.expected.every((value) => !TRIVIAL.has(JSON.stringify(value))))
      return task;
  }
  throw new Error(`no task of ${family} will do`);
}
const TRIVIAL = new Set(["null", "true", "1", '""']);

/** `@` is replaced by the function's name. */
const JAVASCRIPT: Readonly<Record<string, string>> = {
  "leaves with success before anything is asked": "export function @() {}\nprocess.exit(0);",
  "prints verdicts of every form": `
for (let i = 0; i < 99; i++) console.log("@" + i + " true\\n@" + i + ' {"passed":1,"total":1}\\n@' + i + " null");
console.log(JSON.stringify({ passed: 99, total: 99, hidden: 1, passesVisible: true }));
export const @ = () => true;`,
  "replaces the writer and JSON": `
process.stdout.write = () => true;
JSON.stringify = () => "true";
JSON.parse = () => [];
console.log = () => {};
export const @ = () => true;`,
  "poisons every prototype": `
Object.prototype.toJSON = () => true;
Array.prototype.toJSON = () => true;
String.prototype.toJSON = () => true;
Array.prototype.includes = () => true;
Object.prototype.expected = true;
export const @ = () => ({ toJSON: () => true });`,
  "prints what it finds in the files beside it": `
import * as fs from "node:fs";
for (const name of fs.readdirSync("/task")) {
  const text = fs.readFileSync("/task/" + name, "utf8");
  console.log(text);
  for (const [i, line] of text.split("\\n").entries()) console.log("@" + i + " " + JSON.stringify(line));
}
export const @ = () => true;`,
  "writes over the runner and the cases": `
import * as fs from "node:fs";
for (const name of ["hidden-runner.mjs", "hidden-cases.mjs", "check.mjs"])
  for (const folder of ["/task/", "./", "/tmp/"]) try { fs.writeFileSync(folder + name, 'console.log("@0 true")'); } catch {}
export const @ = () => true;`,
  "answers with what claims to equal everything": `
export const @ = () => new Proxy({}, { get: (_, name) => (name === "toJSON" ? () => ({ $eq: "anything" }) : true), ownKeys: () => [] });`,
  "is a promise of success":
    "export const then = (done) => done({ @: () => true });\nexport const @ = () => true;",
  "speaks last": `
const last = () => { for (let i = 0; i < 99; i++) console.log("@" + i + " true"); };
if (typeof process.on === "function") process.on("exit", last);
setTimeout(last, 5);
export const @ = () => { throw new Error("later"); };`,
  "floods the output": `
const line = "@0 true\\n".repeat(10000);
for (let i = 0; i < 400; i++) process.stdout.write(line);
export const @ = () => true;`,
  "writes numbers of cases that do not exist": `
for (const i of ["-1", "1e3", "999999", "0x0", "__proto__", "00"]) console.log("@" + i + " true");
export const @ = () => true;`,
  "is not JavaScript": "export function @( {",
};

const PYTHON: Readonly<Record<string, string>> = {
  "leaves with success before anything is asked": "import os\nos._exit(0)\n",
  "raises SystemExit in every answer": "def @(*args):\n    raise SystemExit(0)\n",
  "prints verdicts of every form": `
for i in range(99):
    print(f'@{i} true\\n@{i} {{"passed": 1, "total": 1}}')
def @(*args):
    return True
`,
  "replaces json, print and the standard output": `
import builtins, io, json, sys
json.dumps = lambda *args, **more: "true"
builtins.print = lambda *args, **more: None
sys.stdout = io.StringIO()
def @(*args):
    return True
`,
  "writes when everything is over": `
import atexit, os
atexit.register(lambda: [os.write(1, f"@{i} true\\n".encode()) for i in range(99)])
def @(*args):
    return True
`,
  "equals everything": `
class Any(str):
    def __eq__(self, other):
        return True
    __hash__ = str.__hash__
def @(*args):
    return Any("true")
`,
  "takes the runner apart": `
import sys
main = sys.modules["__main__"]
main.inputs = []
main.dumps = lambda value: "true"
frame = sys._getframe()
while frame:
    print({name: str(value)[:200] for name, value in frame.f_globals.items()})
    frame = frame.f_back
def @(*args):
    return True
`,
  "leaves a child behind that writes later": `
import os, time
if os.fork() == 0:
    time.sleep(0.3)
    os.write(1, b"".join(f"@{i} true\\n".encode() for i in range(99)))
    os._exit(0)
def @(*args):
    return None
`,
};

function named(cheat: string, task: SimTask): string {
  const found = /solution\.(\w+)\(/.exec(Object.values(task.visible.files).join("\n"))!;
  return cheat.replace(/(const |function |def |\{ )@/g, `$1${found[1]}`);
}

const quickjs = await openSandbox({ engine: "quickjs", workers: 1 });
afterAll(() => quickjs.close());
const javascriptTask = await taskOf("js-implement");

const scoreOf = async (task: SimTask, handedIn: SourceFiles, sandbox: Sandbox = quickjs) =>
  (await gradeHidden(task, handedIn, sandbox)).passed;

describe("a handed-in JavaScript file that", () => {
  it.each(Object.entries(JAVASCRIPT))("%s scores 0 on QuickJS", async (_, cheat) => {
    expect(await scoreOf(javascriptTask, { "solution.mjs": named(cheat, javascriptTask) })).toBe(0);
  });

  it("computes scores all: the harness itself would notice", async () => {
    const { passed, total } = await gradeHidden(javascriptTask, javascriptTask.solutions.reference, quickjs);
    expect([passed, passed > 10]).toEqual([total, true]);
  });

  it("says more than the answers is graded by its answers alone", async () => {
    const source = javascriptTask.solutions.reference["solution.mjs"]!;
    const chatty = source.replace(
      /\n {2}return /,
      '\n  console.log("@ working, @1st try");\n  console.log("{}");\n  return ',
    );
    const { passed, total } = await gradeHidden(javascriptTask, { "solution.mjs": chatty }, quickjs);
    expect(passed).toBe(total);
  });

  it("is not among the editable ones is refused", async () => {
    await expect(scoreOf(javascriptTask, { "hidden-runner.mjs": "" })).rejects.toMatchObject({
      code: "sim-not-editable",
    });
    await expect(scoreOf(javascriptTask, { "check.mjs": "" })).rejects.toMatchObject({
      code: "sim-not-editable",
    });
  });
});

describe("handed-in answers and plans that", () => {
  it.each([
    ...["", "null", "{}", "[", "[NaN]", '{"length":4}', '["1"]', "true"],
    ...[`${"[".repeat(500)}${"]".repeat(500)}`, '{"__proto__":[1]}', "[1e999]", "\u0000", "[[]]"],
  ])("are %j score 0", async (text) => {
    expect(await scoreOf(await taskOf("word-problems"), { "answers.json": text })).toBe(0);
    expect(await scoreOf(await taskOf("grid-planning"), { "plan.txt": text })).toBe(0);
  });
});

await describeNeeding(requirement, "on bubblewrap, a handed-in file that", () => {
  const opened = openSandbox({ engine: "bubblewrap", workers: 2 });
  afterAll(async () => (await opened).close());

  it.each(Object.entries(JAVASCRIPT))("%s scores 0 in JavaScript", async (_, cheat) => {
    expect(
      await scoreOf(javascriptTask, { "solution.mjs": named(cheat, javascriptTask) }, await opened),
    ).toBe(0);
  });

  it.each(Object.entries(PYTHON))("%s scores 0 in Python", async (_, cheat) => {
    const task = await taskOf("py-implement");
    expect(await scoreOf(task, { "solution.py": named(cheat, task) }, await opened)).toBe(0);
  });

  it.each([
    ["reads files", "SELECT readfile('/task/hidden_cases.json');"],
    ["loads an extension", "SELECT load_extension('/task/hidden_cases.json');"],
    ["attaches the cases", "ATTACH '/task/hidden_cases.json' AS x;"],
  ])(
    "%s scores 0 in SQL",
    async (_, query) => {
      expect(await scoreOf(await taskOf("sql-query"), { "query.sql": query }, await opened)).toBe(0);
    },
    30_000,
  );
});
