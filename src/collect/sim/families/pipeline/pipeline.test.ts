import { afterAll, describe, expect, it } from "vitest";
import * as requirement from "../../../../../scripts/setup/sandbox.mjs";
import { describeNeeding } from "../../../../../test/support/needs.ts";
import type { Json } from "../../../../base/canonical-json.ts";
import { rngFrom } from "../../../../base/rng.ts";
import { openSandbox, textOf } from "../../../sandbox/index.ts";
import type { Language } from "../family.ts";
import { numberInputs, textInputs } from "./inputs.ts";
import { evaluate, OPS, type Pipeline, render } from "./pipeline.ts";

const NAMING = { functionName: "f", argument: "given", variable: "out" };

/** Every operation with three draws of its parameters, and every slip of each draw. */
const CASES: readonly { name: string; pipeline: Pipeline; inputs: readonly Json[] }[] = OPS.flatMap((op) => {
  const rng = rngFrom(3).split(op.name);
  const { plain, edges } = op.from === "numbers" ? numberInputs(rng) : textInputs(rng);
  const texts = [...plain, ...edges].map(([input]) => input!);
  const inputs = op.from === "words" ? texts.map((text) => (text as string).split(" ")) : texts;
  return [0, 1, 2].flatMap((i) => {
    const params = op.draw(rng.split(i));
    const all = [{ params, flaw: "right" }, ...op.slips(params)];
    return all.map((each) => ({
      name: `${op.name}, ${each.flaw}`,
      pipeline: [{ op, params: each.params }],
      inputs,
    }));
  });
});

/** Builds one program with a module per case. The program prints a line of answers for each case. */
function programOf(language: Language): Record<string, string> {
  const data = JSON.stringify(CASES.map(({ inputs }) => inputs));
  const modules = CASES.map(({ pipeline }, i) => [
    `m${i}.${language === "python" ? "py" : "mjs"}`,
    render(pipeline, language, NAMING),
  ]);
  const main =
    language === "python"
      ? `import importlib\nimport json\n\ninputs = json.load(open("inputs.json"))\nfor i, each in enumerate(inputs):\n    f = importlib.import_module(f"m{i}").f\n    print(json.dumps([f(value) for value in each]))\n`
      : `import { readFileSync } from "node:fs";\nconst inputs = JSON.parse(readFileSync("inputs.json", "utf8"));\nfor (let i = 0; i < inputs.length; i++) {\n  const { f } = await import("./m" + i + ".mjs");\n  console.log(JSON.stringify(inputs[i].map((value) => f(value))));\n}\n`;
  return {
    "inputs.json": data,
    [language === "python" ? "main.py" : "main.mjs"]: main,
    ...Object.fromEntries(modules),
  };
}

function expectSame(stdout: string) {
  const answers = stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  const wanted = CASES.map(({ name, pipeline, inputs }) => [
    name,
    inputs.map((input) => evaluate(pipeline, input)),
  ]);
  expect(CASES.map(({ name }, i) => [name, answers[i]])).toEqual(wanted);
}

describe("every operation, right and wrong", () => {
  it("does in JavaScript what it does here", async () => {
    const sandbox = await openSandbox({ engine: "quickjs", workers: 1 });
    afterAll(() => sandbox.close());
    const result = await sandbox.exec({ kind: "javascript", entry: "main.mjs" }, programOf("javascript"), {
      outputBytes: 8_000_000,
    });
    expect(textOf(result.stderr)).toBe("");
    expectSame(textOf(result.stdout));
    expect(CASES.length).toBeGreaterThan(250);
  });

  it("says what it does in words, and never the same for a mistake that is visible in them", () => {
    for (const op of OPS) {
      const params = op.draw(rngFrom(1).split(op.name));
      expect(op.say(params).length).toBeGreaterThanOrEqual(2);
      for (const phrase of op.say(params)) expect(phrase).not.toMatch(/undefined|NaN|\$\{|\.$/);
      expect(op.slips(params).length).toBeGreaterThanOrEqual(1);
    }
  });
});

await describeNeeding(requirement, "every operation, in Python", () => {
  it("does what it does here, right and wrong", async () => {
    const sandbox = await openSandbox({ engine: "bubblewrap", workers: 1 });
    afterAll(() => sandbox.close());
    const result = await sandbox.exec({ kind: "python", entry: "main.py" }, programOf("python"), {
      outputBytes: 8_000_000,
      timeoutMs: 60_000,
    });
    expect(textOf(result.stderr)).toBe("");
    expectSame(textOf(result.stdout));
  }, 60_000);
});
