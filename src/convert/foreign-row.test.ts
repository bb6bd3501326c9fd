import { describe, expect, test } from "vitest";
import type { ForeignDecision } from "./foreign-decision.ts";
import { fromForeign } from "./foreign-row.ts";
import { RowIdentities } from "./row-identity.ts";

const decision = (line: number, more: Partial<ForeignDecision> = {}): ForeignDecision => ({
  line,
  action: 0,
  actions: 2,
  reward: 1,
  propensity: 0.5,
  context: [["x", line]],
  ...more,
});

function rowsOf(decisions: readonly ForeignDecision[], name = "women.csv") {
  const identities = new RowIdentities();
  return decisions.map((each) => fromForeign(each, { name, source: "real", identities }));
}
const idsOf = (decisions: readonly ForeignDecision[], name?: string) =>
  rowsOf(decisions, name).map(({ id }) => id);

describe("ids of imported rows", () => {
  test("come from the content: another file name and other lines change nothing", () => {
    const context = [["x", 7]] as const;
    const before = rowsOf([decision(7, { context }), decision(8, { context, reward: 0 })]);
    const after = rowsOf([decision(1, { context }), decision(2, { context, reward: 0 })], "men.jsonl");
    expect(after).toEqual(before);
    expect(new Set(before.map(({ id }) => id)).size).toBe(2);
  });

  test("tell equal rows apart by their number, and a row appended changes none before it", () => {
    const context = [["x", 7]] as const;
    const three = [1, 2, 3].map((line) => decision(line, { context }));
    const ids = idsOf(three);
    expect(ids).toEqual([ids[0], `${ids[0]}:2`, `${ids[0]}:3`]);
    expect(idsOf([...three, decision(4, { action: 2, actions: 3 })]).slice(0, 3)).toEqual(ids);
  });

  test("sort by step within an episode, with and without steps in the file", () => {
    for (const steps of [true, false]) {
      const rows = Array.from({ length: 12 }, (_, i) =>
        decision(i + 1, { episode: "e", context: [["x", -i]], ...(steps ? { step: i } : {}) }),
      );
      const ids = idsOf(rows);
      expect([...ids].sort()).toEqual(ids);
      expect(new Set(rowsOf(rows).map(({ task, chain }) => `${task} ${chain}`))).toEqual(new Set(["e e"]));
    }
  });

  test("come from the log where it names its decisions, and times are kept", () => {
    expect(rowsOf([decision(3, { id: "e-1", atMs: 5 })])).toMatchObject([{ id: "e-1", atMs: 5 }]);
  });
});

describe("tasks of imported rows", () => {
  test("are the questions: equal prompts and fields are one task", () => {
    const ask = (prompt: string, x: number, reward: number) =>
      decision(1, { prompt, reward, context: [["x", x]] });
    const tasks = rowsOf([ask("a", 1, 0), ask("a", 1, 1), ask("a", 2, 0), ask("b", 1, 0)]).map(
      ({ task }) => task,
    );
    expect(tasks[1]).toBe(tasks[0]);
    expect(new Set(tasks).size).toBe(3);
  });

  test("are the rows themselves where there is no prompt, and what the log says where it says it", () => {
    const [first, second, named] = rowsOf([
      decision(1, { context: [["x", 1]] }),
      decision(2, { context: [["x", 1]] }),
      decision(3, { task: "t", prompt: "a" }),
    ]);
    expect(first!.task).toBe(first!.id);
    expect(second!.task).toBe(second!.id);
    expect(named!.task).toBe("t");
  });
});
