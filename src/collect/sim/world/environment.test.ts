import { describe, expect, it } from "vitest";
import { handTasks } from "../../../../test/support/sim-tasks.ts";
import { actionOfCall, actionsInText, TEXT_PROTOCOL, TOOLS, textOfAction } from "../tasks/actions.ts";
import { promptOf } from "../tasks/prompt.ts";
import { openEnvironment } from "./environment.ts";

const { visible, oracle } = handTasks(1)[0]!.task;
const open = () =>
  openEnvironment(visible, async (_, files) => ({ passed: "solution.mjs" in files, output: "said this" }));

describe("an environment", () => {
  it("lists, reads, writes and tests; what was written is what is handed in", async () => {
    const place = open();
    expect(await place.act({ kind: "look" })).toBe(
      `2 files\ncheck.mjs (${visible.files["check.mjs"]!.length} characters)\nsolution.mjs (${visible.files["solution.mjs"]!.length} characters, yours to change)`,
    );
    expect(await place.act({ kind: "read", path: "check.mjs" })).toContain(
      'import { f } from "./solution.mjs"',
    );
    expect(await place.act({ kind: "test" })).toBe("visible tests failed\nsaid this");
    expect(await place.act({ kind: "write", path: "solution.mjs", content: "mine" })).toBe(
      "wrote solution.mjs",
    );
    expect(await place.act({ kind: "read", path: "solution.mjs" })).toBe("content of solution.mjs\nmine");
    expect(await place.act({ kind: "test" })).toBe("visible tests passed\nsaid this");
    expect(place.submitted).toBe(false);
    expect(await place.act({ kind: "submit" })).toBe("handed in");
    expect([place.submitted, place.files]).toEqual([true, { "solution.mjs": "mine" }]);
  });

  it.each([
    [{ kind: "write", path: "check.mjs", content: "" }, "check.mjs is not yours to change"],
    [{ kind: "write", path: "../out", content: "" }, "is not yours to change"],
    [{ kind: "write", path: "solution.mjs", content: "x".repeat(300_000) }, "more than the"],
    [{ kind: "read", path: "__proto__" }, 'there is no file "__proto__"'],
    [{ kind: "invalid", problem: "no such thing" }, "no such thing"],
  ] as const)("refuses %j in an observation, and nothing changes", async (action, why) => {
    const place = open();
    const said = await place.act(action);
    expect(said).toMatch(/^refused: /);
    expect(said).toContain(why);
    expect(place.files).toEqual({});
  });

  it("refuses everything once the files are handed in", async () => {
    const place = open();
    await place.act({ kind: "submit" });
    const late = await place.act({ kind: "write", path: "solution.mjs", content: "late" });
    expect([late, place.files]).toEqual(["refused: the files are handed in already", {}]);
  });

  it("shows an agent and a router nothing of family, difficulty or oracle", () => {
    const prompt = promptOf(visible);
    expect(prompt).toContain(visible.statement);
    expect(prompt).not.toContain(oracle.family);
    expect(prompt).not.toContain("hidden.mjs");
  });
});

describe("actions", () => {
  const call = (name: string, given: string) =>
    actionOfCall({ id: "c", type: "function", function: { name, arguments: given } });

  it("are read from tool calls, and what is wrong with a call is said", () => {
    expect(call("write_file", '{"path":"a","content":"b"}')).toEqual({
      kind: "write",
      path: "a",
      content: "b",
    });
    expect(call("submit", "")).toEqual({ kind: "submit" });
    expect(call("write_file", "{")).toEqual({
      kind: "invalid",
      problem: "the arguments of write_file are not JSON",
    });
    expect(call("read_file", "null")).toMatchObject({ kind: "invalid" });
    expect(call("read_file", "{}")).toEqual({ kind: "invalid", problem: "read_file needs path" });
    expect(call("rm", "{}")).toMatchObject({
      problem: expect.stringContaining("there is no rm; there are list_files"),
    });
    expect(TOOLS.map((tool) => tool.function.name)).toEqual([
      ...["list_files", "read_file", "write_file", "run_tests", "submit"],
    ]);
  });

  it("are read from plain text as they are written to it", () => {
    const text = `I try this.\n${textOfAction("write_file", { path: "a b.mjs", content: "one\n\ntwo\n" })}\nACTION run_tests`;
    expect(actionsInText(text)).toEqual([
      { kind: "write", path: "a b.mjs", content: "one\n\ntwo\n" },
      { kind: "test" },
    ]);
    expect(actionsInText("I am done.")).toBeUndefined();
    expect(actionsInText("ACTION write_file a\nno content")).toMatchObject([{ kind: "invalid" }]);
    expect(actionsInText(TEXT_PROTOCOL)).toHaveLength(5);
  });
});
