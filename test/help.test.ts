import { readdirSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { buildProgram } from "../src/cli/program.ts";
import { commandsOf, examplesOf, fullName, helpOf, parseOnly, wordsOf } from "./support/command-tree.ts";

const commands = commandsOf(await buildProgram());
const names = commands.map(fullName);
const fileOf = (name: string): string => `${name.replaceAll(" ", "-")}.txt`;
const commandNamed = (name: string) => commands.find((command) => fullName(command) === name)!;

describe("help", () => {
  it.each(names)("%s --help prints the text in test/help", async (name) => {
    await expect(helpOf(commandNamed(name))).toMatchFileSnapshot(`help/${fileOf(name)}`);
  });

  it("has a text for each command and none for others", () => {
    expect(readdirSync("test/help").sort()).toEqual(names.map(fileOf).sort());
  });

  it.each(names)("%s --help ends with an example that parses", async (name) => {
    const examples = examplesOf(helpOf(commandNamed(name)));
    expect(examples).not.toEqual([]);
    for (const words of examples) await parseOnly(await buildProgram(), words);
    expect(examples.some((words) => words.join(" ").startsWith(name))).toBe(true);
  });
});

describe("a command", () => {
  it("is loaded alone where it is named, and is the same as among all of them", async () => {
    const top = commands.filter(({ parent }) => parent?.name() === "rollbook" && parent.parent === null);
    expect(top.length).toBeGreaterThan(15);
    for (const each of top) {
      const alone = await buildProgram(undefined, [each.name(), "--json"]);
      expect(alone.commands.map((one) => helpOf(one))).toEqual([helpOf(each)]);
    }
    expect((await buildProgram(undefined, ["--version"])).commands).toEqual([]);
    expect((await buildProgram(undefined, ["trian"])).commands).toHaveLength(top.length);
  });
});

describe("the check of examples", () => {
  it("finds the example lines at the end of a help text, continued lines joined", () => {
    const help =
      "Usage: x\n\nExamples:\n  $ rollbook a --b 'c d' \\\n      --e\n  rollbook f > out.json  # why\n";
    expect(examplesOf(help)).toEqual([
      ["rollbook", "a", "--b", "c d", "--e"],
      ["rollbook", "f"],
    ]);
    expect(examplesOf("Usage: x\n\nExamples:\n  rollbook a\n\nMore text\n")).toEqual([]);
  });

  it("splits words as a shell does, up to a pipe", () => {
    expect(wordsOf(`rollbook ls --json | jq '.[0]'`)).toEqual(["rollbook", "ls", "--json"]);
  });

  it("refuses a flag or a command that does not exist", async () => {
    await expect(parseOnly(await buildProgram(), ["rollbook", "demo", "--no-such-flag"])).rejects.toThrow(
      "--no-such-flag",
    );
    await expect(parseOnly(await buildProgram(), ["rollbook", "no-such-command"])).rejects.toThrow(
      "no-such-command",
    );
  });
});
