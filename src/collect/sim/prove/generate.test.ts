import { describe, expect, it } from "vitest";
import { canonicalize } from "../../../base/canonical-json.ts";
import { digestJson } from "../../../base/digest.ts";
import { rngFrom } from "../../../base/rng.ts";
import { DIFFICULTIES, isUnusable } from "../families/family.ts";
import { FAMILIES, familyNamed } from "../families/index.ts";
import type { SimTask } from "../tasks/sim-task.ts";
import { GENERATOR_VERSION, type GenerateOptions, generateTasks, taskDigest } from "./generate.ts";

async function draw(options: GenerateOptions): Promise<SimTask[]> {
  const tasks: SimTask[] = [];
  for await (const { task } of generateTasks(options)) tasks.push(task);
  return tasks;
}

const hundred = await draw({ count: 100, seed: 7 });

describe("the generator", () => {
  it("gives the same bytes for the same seed, however many are under way, and others for another seed", async () => {
    const slowly = async (task: SimTask) => {
      // Makes the proofs end out of order.
      await new Promise((resolve) => setTimeout(resolve, task.digest.charCodeAt(10) % 7));
      return { proved: false, reason: "never" } as const;
    };
    const refused = new Map<string, string[]>();
    for (const parallel of [1, 8]) {
      const reasons: string[] = [];
      const prove = async (task: SimTask) =>
        task.digest.endsWith("0") ? slowly(task) : { proved: true as const, proof: {} as never };
      const tasks = await draw({
        count: 60,
        seed: 7,
        parallel,
        prove,
        onRejected: ({ reason }) => reasons.push(reason),
      });
      refused.set(canonicalize(tasks), reasons.sort());
    }
    expect(refused.size).toBe(1);
    expect([...refused.values()][0]).toContain("never");
    expect(canonicalize(await draw({ count: 100, seed: 7 }))).toBe(canonicalize(hundred));
    expect(
      (await draw({ count: 100, seed: 8 })).some(({ digest }) =>
        hundred.some((task) => task.digest === digest),
      ),
    ).toBe(false);
  });

  /** This digest does not prove correctness. A change of the tasks that a seed gives must raise GENERATOR_VERSION. */
  it("keeps what a seed gives within one version, on every Node", () => {
    expect([
      GENERATOR_VERSION,
      digestJson(
        "test.tasks.v1",
        hundred.map((task) => [task.digest, task.solutions]),
      ),
    ]).toEqual([1, "sha256:370e03eabef486d3526b1167fd93c3bcdb3f3426364453e5d0073d276ba5ef12"]);
  });

  it("lets families and difficulties take turns", () => {
    expect(hundred.slice(0, FAMILIES.length).map((task) => task.oracle.family)).toEqual(
      FAMILIES.map((each) => each.name),
    );
    for (const family of FAMILIES) {
      const mine = hundred.filter((task) => task.oracle.family === family.name);
      expect(mine.map((task) => task.oracle.difficulty)).toEqual([...DIFFICULTIES, ...DIFFICULTIES]);
    }
  });

  it("shows neither family, difficulty nor any hidden case, and asks nothing twice", () => {
    expect(new Set(hundred.map((task) => task.visible.statement)).size).toBe(100);
    for (const { visible, oracle, digest } of hundred) {
      expect(digest).toBe(taskDigest({ visible, oracle }));
      const shown = canonicalize(visible);
      expect(shown).not.toContain(oracle.family);
      expect(shown).not.toMatch(/difficult|oracle|hidden/i);
      if (oracle.grading.kind !== "program") continue;
      const inputs = hiddenInputs(oracle.grading.files);
      expect(inputs.length).toBe(oracle.grading.expected.length);
      expect(inputs.length).toBeGreaterThanOrEqual(12);
      const checks = Object.entries(visible.files).filter(([path]) => path.startsWith("check."));
      // An empty list or text may occur in any file. A longer input in a file would be a leak.
      for (const input of inputs
        .map((args) => JSON.stringify(args).slice(1, -1))
        .filter((text) => text.length > 12))
        for (const [, text] of checks) expect(text).not.toContain(input);
    }
  });

  it("puts nothing that is right into the files that run beside handed-in code", () => {
    for (const { oracle } of hundred) {
      if (oracle.grading.kind !== "program") continue;
      expect(Object.keys(oracle.grading.files)).toHaveLength(2);
      expect(JSON.stringify(oracle.grading.files)).not.toMatch(/expected|want/);
    }
  });

  it("has four mutants and more, none of them twice, each with a flaw that has a name", () => {
    for (const { solutions } of hundred) {
      expect(solutions.mutants.length).toBeGreaterThanOrEqual(4);
      const files = solutions.mutants.map((mutant) => canonicalize(mutant.files));
      expect(new Set([...files, canonicalize(solutions.reference)]).size).toBe(files.length + 1);
      expect(solutions.mutants.every((mutant) => mutant.flaw.length > 5)).toBe(true);
    }
  });

  it("really has the variety it claims: programs differ in more than their constants", () => {
    const shapeOf = (text: string) =>
      text.replace(/\d+|"[^"]*"/g, "_").replace(/\b(const|let|function|export|def)\s+\w+(\(\w+\))?/g, "$1");
    for (const name of [
      "js-implement",
      "py-bugfix",
      "json-transform",
      "log-forensics",
      "regex-from-examples",
      "sql-query",
    ]) {
      const family = familyNamed(name);
      const shapes = new Set<string>();
      for (let i = 0; i < 60; i++) {
        const draft = family.draw(rngFrom(3).split(i), 3);
        if (!isUnusable(draft)) shapes.add(shapeOf(Object.values(draft.solutions.reference)[0]!));
      }
      expect([name, shapes.size]).toEqual([name, expect.toSatisfy((n: number) => n >= 25)]);
      expect(family.structures).toBeGreaterThan(200);
    }
  });

  it("refuses no tasks, no families and unknown ones", async () => {
    await expect(draw({ count: 0, seed: 1 })).rejects.toMatchObject({ code: "bad-count" });
    await expect(draw({ count: 1.5, seed: 1 })).rejects.toMatchObject({ code: "bad-count" });
    await expect(draw({ count: 1, seed: -1 })).rejects.toMatchObject({ code: "bad-seed" });
    await expect(draw({ count: 1, seed: 1, families: [] })).rejects.toMatchObject({ code: "no-families" });
    expect(() => familyNamed("js-bugfx")).toThrow(/js-bugfix/);
  });

  it("gives up on a family that never makes a task, and passes on what a proof throws", async () => {
    const barren = { ...FAMILIES[0]!, draw: () => ({ unusable: "always" }) };
    await expect(draw({ count: 1, seed: 1, families: [barren] })).rejects.toMatchObject({
      code: "sim-exhausted",
    });
    const prove = () => Promise.reject(new Error("the sandbox is gone"));
    await expect(draw({ count: 9, seed: 1, parallel: 4, prove })).rejects.toThrow("the sandbox is gone");
  });
});

function hiddenInputs(files: Readonly<Record<string, string>>): unknown[][] {
  if (files["hidden_cases.json"] !== undefined) return JSON.parse(files["hidden_cases.json"]);
  const text = files["hidden-cases.mjs"]!.replace(/^export default |;\n$/g, "");
  return JSON.parse(JSON.parse(text));
}
