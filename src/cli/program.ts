/** The command line as one commander program. In: what it may touch, and the words that will be run. Out: the program,
 *  not yet run. Only the command that the words name is loaded: most of a short command's time would go into the others. */
import { readFileSync } from "node:fs";
import { Command } from "commander";
import { withExamples } from "./command.ts";
import { type AddCommand, COMMANDS } from "./commands/index.ts";
import { type Io, processIo } from "./io.ts";

export async function buildProgram(io: Io = processIo(), words: readonly string[] = []): Promise<Command> {
  const program = new Command("rollbook");
  program
    .description("Rollbook turns an agent's runs into better policies, and can prove how.")
    .version(packageVersion(), "--version", "print the version")
    .helpOption("-h, --help", "print this help")
    .helpCommand("help [command]", "print the help of a command")
    .showSuggestionAfterError()
    .exitOverride()
    .configureOutput({
      writeOut: (text) => io.out(text),
      // Errors are printed by whoever runs the program, in the form that was asked for.
      outputError: () => {},
      writeErr: (text) => io.err(text),
    });
  withExamples(program, ["rollbook demo", "rollbook batch assemble --help"]);
  for (const load of loadersFor(words[0])) (await load())(program, io);
  return program;
}

/** All of them where none is named: for the help, and for the nearest name of a typo. */
function loadersFor(first: string | undefined): (() => Promise<AddCommand>)[] {
  if (first === "--version") return [];
  return first !== undefined && Object.hasOwn(COMMANDS, first) ? [COMMANDS[first]!] : Object.values(COMMANDS);
}

function packageVersion(): string {
  const text = readFileSync(new URL("../../package.json", import.meta.url), "utf8");
  return (JSON.parse(text) as { version: string }).version;
}
