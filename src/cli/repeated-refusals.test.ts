import { expect, it } from "vitest";
import { RollbookError } from "../base/index.ts";
import { tellRefusalsOnce } from "./repeated-refusals.ts";

function told(...messages: readonly string[]): string[] {
  const texts: string[] = [];
  const { tell, end } = tellRefusalsOnce((text) => texts.push(text));
  for (const message of messages) tell(new RollbookError("bad", {}, message));
  end();
  return texts;
}

it("a reason is printed with its first line; the other lines are named, and past five counted", () => {
  const lines = Array.from({ length: 8 }, (_, i) => `a.jsonl:${i + 1}: no schema: give one.`);
  expect(told(...lines, "b.jsonl:1: bad JSON.", "a.jsonl:9: bad JSON.")).toEqual([
    "error: a.jsonl:1: no schema: give one. [bad]\n",
    "error: b.jsonl:1: bad JSON. [bad]\n",
    "the same fault as a.jsonl:1 in 7 more lines: a.jsonl:2, a.jsonl:3, a.jsonl:4, a.jsonl:5, a.jsonl:6 and others\n",
    "the same fault as b.jsonl:1 in 1 more line: a.jsonl:9\n",
  ]);
});

it("of more than 100 reasons the others are counted", () => {
  const texts = told(...Array.from({ length: 103 }, (_, i) => `a.jsonl:${i}: reason ${i}.`));
  expect(texts).toHaveLength(101);
  expect(texts.at(-1)).toBe("… and 3 errors more\n");
});
