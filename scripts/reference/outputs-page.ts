/** The reference of JSON outputs, from the output of the commands on a small book. Out: the text of docs/reference/outputs.md. */
import { buildProgram } from "../../src/cli/program.ts";
import { SCHEMA_FORMS } from "../../src/contract/index.ts";
import { commandsOf, fullName } from "../../test/support/command-tree.ts";
import { markdownTable } from "./markdown-table.ts";
import { outputRows } from "./output-rows.ts";
import { type CommandOutput, commandOutputs } from "./output-walk.ts";

const INTRO = `# JSON outputs

The keys that commands print with \`--json\`. A command prints one document on one line, or JSON Lines; where it prints a list,
the table shows an element. [cli.md](cli.md#json) says what each command prints, and how errors look.

The tables cover every command with \`--json\` and come from real outputs on a small book. A key that needs an option or a rare
case can be missing here. A type can also be null or absent where the meaning says so. A \`record\` is a sealed record:
\`rollbook schema KIND\` prints its schema. \`npm run reference\` writes this page; do not edit it.`;

export async function outputsPage(): Promise<string> {
  const outputs = await commandOutputs();
  const missing = await namesWithout(outputs);
  if (missing.length > 0) throw new Error(`no output of ${missing.join(", ")}: add a step to output-walk.ts`);
  return [
    INTRO,
    ...outputs.flatMap(({ title, documents }) => ["", `## ${title}`, "", ...described(title, documents)]),
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

/** The kind of documents that are a whole record: they begin with a schema that `rollbook schema` prints. */
function recordKind(documents: readonly object[]): string | undefined {
  const [name, value] = Object.entries(documents[0] ?? {})[0] ?? [];
  return name === "schema" ? SCHEMA_FORMS.find(({ kind }) => kind === value)?.kind : undefined;
}

async function namesWithout(outputs: readonly CommandOutput[]): Promise<string[]> {
  const shown = new Set(outputs.flatMap(({ title }) => commandsIn(title)));
  return commandsOf(await buildProgram())
    .filter(({ options }) => options.some(({ long }) => long === "--json"))
    .map((command) => fullName(command).replace("rollbook ", ""))
    .filter((name) => !shown.has(name));
}

/** `train ucb, bc` names two commands of one group; `verify NAME` and `view --out` each name one use of a command. */
function commandsIn(title: string): string[] {
  const [first = "", ...others] = title.split(", ").map((part) => part.replace(/(:| --| NAME).*/, ""));
  const group = first.replace(/ ?\S+$/, " ");
  return [first, ...others.flatMap((each) => [each, `${group}${each}`])];
}
