import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import { Cli } from "../support/cli.ts";
import { wordsOf } from "../support/command-tree.ts";

it("the example of docs/loop.md runs from an empty folder and prints the values that the page shows", async () => {
  const page = readFileSync("docs/loop.md", "utf8");
  const cli = new Cli({ clock: systemClock });
  for (const [, name, text] of page.matchAll(/```yaml file=(\S+)\n([\s\S]*?)```/g))
    writeFileSync(join(cli.folder, name!), text!);
  const inFolder = (word: string) =>
    ["tasks", "loop.yaml", "book"].includes(word) ? join(cli.folder, word) : word;
  const commands = [...page.matchAll(/```sh\n([\s\S]*?)```/g)].flatMap(([, text]) =>
    text!.trim().split("\n"),
  );
  let printed = "";
  for (const command of commands) printed += await cli.ok(wordsOf(command).slice(1).map(inFolder));
  const shown = page.match(/^WINDOW .*\n(?: +\d .*\n)+/m)![0];
  expect(commands).toHaveLength(4);
  expect(printed).toContain(shown);
}, 180_000);
