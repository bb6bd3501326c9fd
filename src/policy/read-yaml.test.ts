import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { stringify } from "yaml";
import { countCpuMs } from "../../test/support/cpu-time.ts";
import { readYaml } from "./read-yaml.ts";

const bad = (what: string) => new Error(`refused: ${what}`);
const read = (text: string) => readYaml(text, bad);

/** Texts that exhaust the memory or time of an unbounded parser, made from a size. */
const ATTACKS: readonly (readonly [name: string, made: (size: number) => string])[] = [
  ["many characters", (n) => `a: ${"x".repeat(n * 1024)}`],
  ["brackets in brackets", (n) => "[".repeat(n * 100)],
  ["closed brackets in brackets", (n) => "[".repeat(n * 100) + "]".repeat(n * 100)],
  ["braces in braces", (n) => "{a: ".repeat(n * 50)],
  ["lists in lists on one line", (n) => "- ".repeat(n * 100)],
  ["questions in questions", (n) => "? ".repeat(n * 100)],
  ["ever deeper indents", (n) => Array.from({ length: n }, (_, i) => `${" ".repeat(i)}a:`).join("\n")],
  ["many keys", (n) => Array.from({ length: n * 100 }, (_, i) => `k${i}: 1`).join("\n")],
  ["many keys on one line", (n) => `{${Array.from({ length: n * 100 }, (_, i) => `k${i}`).join(",")}}`],
  ["many aliases", (n) => `a: &a 1\nb: [${"*a,".repeat(n)}]`],
  ["aliases of aliases", (n) => laughs(Math.min(n, 30))],
  ["merge keys", (n) => `a: &a {x: 1}\nb: [${"{<<: *a},".repeat(n)}]`],
];

function laughs(levels: number): string {
  const lines = Array.from({ length: levels }, (_, i) => `l${i + 1}: &l${i + 1} [${`*l${i},`.repeat(9)}]`);
  return ["l0: &l0 [ha,ha,ha,ha,ha]", ...lines].join("\n");
}

describe("readYaml", () => {
  it("reads what it wrote, and a comment or a long text is no attack", () => {
    const value = fc.dictionary(
      fc.stringMatching(/^[a-z]{1,8}$/),
      fc.oneof(fc.integer(), fc.boolean(), fc.string(), fc.array(fc.integer(), { maxLength: 5 })),
    );
    fc.assert(
      fc.property(value, (each) => {
        expect(read(stringify(each))).toEqual(each);
      }),
    );
    expect(read(`# ${"[".repeat(60)}\na: "${"- ".repeat(200)}"`)).toEqual({ a: "- ".repeat(200) });
    expect(read("")).toBeNull();
    expect(read("base: &b {price: 1}\nother: *b")).toEqual({ base: { price: 1 }, other: { price: 1 } });
  });

  it.each(ATTACKS)("refuses %s at once, with the caller's error", (_, made) => {
    for (const size of [600, 1_000, 10_000]) {
      const cpuMs = countCpuMs();
      expect(() => read(made(size))).toThrow(/^refused: /);
      expect(cpuMs()).toBeLessThan(3_000);
    }
  });

  it("refuses a key that appears twice, at any depth", () => {
    expect(() => read("a: 1\na: 2")).toThrow('refused: Map keys must be unique: "a" appears twice');
    expect(() => read("x: [{b: 1, b: 2}]")).toThrow("unique");
  });
});

it("a fault of the syntax does not end in a colon: the caller goes on with a full stop", () => {
  expect(() => readYaml("a: [1", (what) => new Error(`${what}.`))).toThrow(/[^:]\.$/);
});
