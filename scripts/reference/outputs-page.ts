/** The reference of JSON outputs, from what the commands print on a small book. Out: the text of docs/outputs.md. */
import { buildProgram } from "../../src/cli/program.ts";
import { commandsOf, fullName } from "../../test/support/command-tree.ts";
import { markdownTable } from "./markdown-table.ts";
import { outputRows } from "./output-rows.ts";
import { type CommandOutput, commandOutputs } from "./output-walk.ts";

const INTRO = `# JSON outputs

The keys that commands print with \`--json\`. A command prints one document on one line, or JSON Lines; where it prints a list,
the table shows an element. [cli.md](cli.md#json) says what each command prints, and how errors look.

The tables come from real outputs on a small book. A key that needs an option or a rare case can be missing here, and a
type can also be null or absent where the meaning says so. A \`record\` is a sealed record: \`rollbook schema KIND\` prints
its schema. \`npm run reference\` writes this page; do not edit it.`;

export async function outputsPage(): Promise<string> {
  const outputs = await commandOutputs();
  const missing = await namesWithout(outputs);
  return [
    INTRO,
    ...outputs.flatMap(({ title, documents }) => ["", `## ${title}`, "", ...described(title, documents)]),
    "",
    "## Other commands",
    "",
    "These commands have `--json` too, and no table here. Some serve until they are stopped or need another program;",
    "[cli.md](cli.md#json) names their main keys.",
    "",
    ...missing.map((name) => `- \`${name}\``),
    "",
  ].join("\n");
}

function described(title: string, documents: readonly object[]): string[] {
  const schema = recordKind(documents);
  if (schema !== undefined)
    return [`A record of kind \`${schema}\`: \`rollbook schema ${schema}\` prints its schema.`];
  return markdownTable([
    ["key", "type", "meaning"],
    ...outputRows(title, documents).map(({ key, type, meaning }) => [`\`${key}\``, type, meaning]),
  ]);
}

/** Documents that are a whole record begin with their schema. */
function recordKind(documents: readonly object[]): string | undefined {
  const [name, value] = Object.entries(documents[0] ?? {})[0] ?? [];
  return name === "schema" ? String(value) : undefined;
}

async function namesWithout(outputs: readonly CommandOutput[]): Promise<string[]> {
  const shown = new Set(outputs.flatMap(({ title }) => commandsIn(title)));
  return commandsOf(await buildProgram())
    .filter(({ options }) => options.some(({ long }) => long === "--json"))
    .map((command) => fullName(command).replace("rollbook ", ""))
    .filter((name) => !shown.has(name));
}

/** `train ucb, bc` names two commands of one group, `verify NAME` and `view --out` one use of a command. */
function commandsIn(title: string): string[] {
  const [first = "", ...others] = title.split(", ").map((part) => part.replace(/(:| --| NAME).*/, ""));
  const group = first.replace(/ ?\S+$/, " ");
  return [first, ...others.flatMap((each) => [each, `${group}${each}`])];
}
