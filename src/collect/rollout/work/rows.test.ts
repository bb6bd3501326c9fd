import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { frozenCopy, type Json } from "../../../base/index.ts";
import { readRow } from "./rows.ts";

describe("readRow", () => {
  it("hands on the metadata of a slime row verbatim, and neither prompt nor label", () => {
    fc.assert(
      fc.property(
        fc.dictionary(fc.string(), fc.jsonValue()),
        fc.jsonValue(),
        fc.jsonValue(),
        (metadata, prompt, label) => {
          const row = readRow({ prompt, label, metadata });
          expect(JSON.stringify(row.payload)).toBe(JSON.stringify(metadata));
          expect(row.warning).toBeUndefined();
        },
      ),
      { numRuns: 100 },
    );
  });

  it.each([["text"], [[1]], [7], [true]])("refuses metadata %j with the row and the remedy", (metadata) => {
    const read = () => readRow({ prompt: "p", metadata }, { where: "row 3" });
    expect(read).toThrow(/^row 3: metadata is an? .*not an object\. Write the row again/);
  });

  it.each([[{ _rollout: {} }], [{ prompt: "p", metadata: { _rollout: { base_url: "x" } } }]])(
    "refuses the old name of rollout_config in %j",
    (row) => {
      expect(() => readRow(row, { where: "row 3" })).toThrow("_rollout has no effect");
    },
  );

  it.each([[undefined], [null]])("gives an empty payload and a warning for metadata %j", (metadata) => {
    const row = readRow(
      { prompt: "p", label: "l", ...(metadata === undefined ? {} : { metadata }) },
      { where: "row 3" },
    );
    expect(row.payload).toEqual({});
    expect(row.warning).toMatch(
      /^row 3: metadata is .*; the agent gets an empty payload\. Write the row again/,
    );
    expect([row.prompt, row.label]).toEqual(["p", "l"]);
  });

  it("takes any other object as the payload itself, and the form can be told", () => {
    expect(readRow({ question: "2+2", answer: 4 })).toEqual({ payload: { question: "2+2", answer: 4 } });
    expect(readRow({ prompt: "p", answer: 4 }).payload).toEqual({ prompt: "p", answer: 4 });
    expect(readRow({ prompt: "p" }, { form: "plain" }).payload).toEqual({ prompt: "p" });
    expect(readRow({ metadata: { a: 1 } }, { form: "slime" }).payload).toEqual({ a: 1 });
  });

  it("writes a list of tools at the top of a slime row into the payload, but never over one", () => {
    expect(readRow({ prompt: "p", metadata: { a: 1 }, tools: ["t"] }).payload).toEqual({
      a: 1,
      tools: ["t"],
    });
    expect(readRow({ prompt: "p", metadata: { tools: 1 }, tools: ["t"] }).payload).toEqual({ tools: 1 });
  });

  it("shares nothing with the row, and a frozen copy cannot be changed at any depth", () => {
    const row = { prompt: "p", metadata: { deep: { list: [1] } } };
    const { payload } = readRow(row);
    (payload.deep as { list: number[] }).list.push(2);
    expect(row.metadata.deep.list).toEqual([1]);
    const frozen = frozenCopy(row.metadata as Json) as typeof row.metadata;
    expect(() => frozen.deep.list.push(2)).toThrow(TypeError);
  });

  it.each([[1], ["x"], [null], [[{}]]])("refuses %j by its place", (row) => {
    expect(() => readRow(row, { where: "tasks.jsonl:7" })).toThrow("tasks.jsonl:7 is not a JSON object");
  });
});
