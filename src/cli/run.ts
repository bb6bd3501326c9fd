/** Runs one command line to its exit code: 0 done, 1 failed or refused, 2 wrong usage. */
import { type Command, CommanderError } from "commander";
import { RollbookError } from "../base/index.ts";
import { renderError } from "../view/format.ts";
import type { Io } from "./io.ts";
import { buildProgram } from "./program.ts";

export async function run(words: readonly string[], io: Io): Promise<number> {
  const json = words.includes("--json");
  const debug = io.env.ROLLBOOK_DEBUG === "1";
  let siblings: readonly string[] = [];
  try {
    const program = await buildProgram(io, words);
    const unknown = unknownCommand(program, words);
    siblings = unknown?.siblings ?? [];
    await program.parseAsync(unknown?.path ?? [...words], { from: "user" });
    return 0;
  } catch (error) {
    if (!(error instanceof CommanderError)) {
      io.err(renderError(error, { json, debug }));
      return error instanceof RollbookError && error.code === "wrong-usage" ? 2 : 1;
    }
    if (error.exitCode === 0) return 0; // --help and --version
    io.err(renderError(usageError(error, siblings), { json, debug }));
    return 2;
  }
}

/** The words up to a command that does not exist, without the request for help: commander would print the help of the
 *  group for `route why --help`, as if `why` were one of its commands. With the commands that its group has. Undefined if
 *  there is none. */
function unknownCommand(
  program: Command,
  words: readonly string[],
): { readonly path: string[]; readonly siblings: readonly string[] } | undefined {
  const path: string[] = [];
  let group = program;
  for (const word of words) {
    if (group.commands.length === 0 || group.registeredArguments.length > 0 || word.startsWith("-"))
      return undefined;
    if (word === "help") continue;
    path.push(word);
    const next = group.commands.find((each) => each.name() === word || each.aliases().includes(word));
    if (next === undefined) {
      // Of the program itself they fill a page: --help has them.
      const siblings = group === program ? [] : group.commands.map((each) => each.name());
      return { path, siblings: siblings.filter((name) => name !== "help") };
    }
    group = next;
  }
  return undefined;
}

/** Commander's own complaint, with the nearest name where it knows one. */
function usageError(error: CommanderError, siblings: readonly string[]): RollbookError {
  const bare = error.message
    .replace(/^error: /, "")
    .replace(/\n\(?Did you mean (.*?)\?\)?$/, ". Did you mean $1?");
  const [, option] = /^unknown option '(--(?:json|book)\b[^']*)'/.exec(bare) ?? [];
  const place =
    option === undefined
      ? siblings.length === 0
        ? ""
        : ` There are: ${siblings.join(", ")}.`
      : ` It belongs to a command, after its name: \`rollbook verify ${option}\`.`;
  const message = error.code === "commander.help" ? "name a subcommand" : bare;
  return new RollbookError(
    "wrong-usage",
    { problem: error.code },
    `${message}${/[.?]$/.test(message) ? "" : "."}${place} See --help.`,
    { cause: error },
  );
}
