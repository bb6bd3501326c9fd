import { describe, expect, test } from "vitest";
import type { DecisionCandidate, DecisionContext } from "./decision.ts";
import { parseStaticTable } from "./static-table.ts";

const YAML = `
schema: rollbook.static-table.v1
rules:
  - when: { promptChars: { min: 100 } }
    choose: large
  - when: { contains: [Prove, theorem] }
    choose: [large, small]
  - when: { fields: { role: planner, turn: { min: 3 }, tool: [sql, python] } }
    choose: large
default: small
`;
const candidates: DecisionCandidate[] = ["small", "large"].map((id) => ({
  id,
  selectable: true,
  reasons: [],
  features: {},
}));
const ask = (over: Partial<DecisionContext>) => ({ prompt: "hi", fields: {}, ...over });

describe("a static table", () => {
  const table = parseStaticTable(YAML, "table.yaml", ["small", "large"]);
  const choice = (over: Partial<DecisionContext>) => candidates[table.choose(ask(over), candidates)]!.id;

  test("takes the first rule whose triggers all hold, else the default", () => {
    expect(choice({})).toBe("small");
    expect(choice({ prompt: "x".repeat(100) })).toBe("large");
    expect(choice({ prompt: "please PROVE it" })).toBe("large");
    expect(choice({ fields: { role: "planner", turn: 3, tool: "sql" } })).toBe("large");
    expect(choice({ fields: { role: "planner", turn: 2, tool: "sql" } })).toBe("small");
    expect(choice({ fields: { role: "planner", turn: 3 } })).toBe("small");
  });

  test("passes over what is not selectable", () => {
    const [small, large] = candidates;
    const some = [small!, { ...large!, selectable: false }];
    expect(table.choose(ask({ prompt: "x".repeat(100) }), some)).toBe(0);
    expect(table.choose(ask({}), [{ ...small!, selectable: false }, large!])).toBe(-1);
  });

  test("has a digest of its meaning, not of its spelling", () => {
    expect(
      parseStaticTable(YAML.replace("choose: large", "choose: [large] # the big one"), "other").digest,
    ).toBe(table.digest);
    expect(parseStaticTable(YAML.replace("min: 100", "min: 101"), "other").digest).not.toBe(table.digest);
  });

  test.each([
    ["an unknown key", YAML.replace("promptChars", "promptchars"), /promptchars/],
    ["an unknown candidate", YAML.replace("default: small", "default: smal"), /smal/],
    ["a rule without a trigger", YAML.replace("{ promptChars: { min: 100 } }", "{}"), /no trigger/],
    ["a missing default", YAML.replace("default: small", ""), /default/],
    ["a key given twice", `${YAML}default: large\n`, /unique/i],
    ["another schema version", YAML.replace("table.v1", "table.v2"), /schema/],
    ["broken YAML", `${YAML}  - [`, /table.yaml/],
    [
      "a range without numbers",
      YAML.replace("{ min: 100 }", "{ min: 100, max: 10 }"),
      /promptChars: is empty: min is above max/,
    ],
    ["an empty range", YAML.replace("{ min: 100 }", "{}"), /min nor max/],
  ])("refuses %s at load, naming the file", (_, text, message) => {
    expect(() => parseStaticTable(text, "table.yaml", ["small", "large"])).toThrow(message);
    expect(() => parseStaticTable(text, "table.yaml", ["small", "large"])).toThrow(
      expect.objectContaining({ code: "bad-table" }) as Error,
    );
  });
});
