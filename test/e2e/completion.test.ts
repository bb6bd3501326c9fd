import { spawnSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { buildProgram } from "../../src/cli/program.ts";
import { Cli } from "../support/cli.ts";

describe("completion", () => {
  it("completes commands, subcommands and options in bash", async () => {
    const cli = new Cli();
    const script = cli.file("completion.bash", await cli.ok("completion bash"));
    const completed = (...words: string[]) => {
      const run = `source ${script}; COMP_WORDS=(rollbook ${words.map((word) => `'${word}'`).join(" ")}); COMP_CWORD=${words.length}; _rollbook; printf '%s\\n' "\${COMPREPLY[@]}"`;
      const { stdout, stderr } = spawnSync("bash", ["--norc", "-c", run], {
        cwd: cli.folder,
        encoding: "utf8",
      });
      expect(stderr).toBe("");
      return stdout.split("\n").filter(Boolean);
    };
    expect(completed("art")).toEqual(["artifact"]);
    expect(completed("artifact", "s")).toEqual(["show"]);
    expect(completed("artifact", "ls", "--min")).toEqual(["--min-score"]);
    expect(completed("artifact", "show", "r-1", "--ca")).toEqual(["--calls"]);
    expect(completed("artifact", "import", "compl")).toEqual(["completion.bash"]);
  });

  it("names every command for every shell", async () => {
    const cli = new Cli();
    const names = (await buildProgram()).commands.map((command) => command.name());
    for (const shell of ["bash", "zsh", "fish"])
      for (const name of names) expect(await cli.ok(`completion ${shell}`)).toContain(name);
    expect((await cli.run("completion tcsh")).code).toBe(2);
  });
});
