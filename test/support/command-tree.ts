/** Walks a commander program: its commands, their help as a user sees it, and the examples in that help.
 *  In: the program. Out: texts and words. Runs no action. */
import { type Command, CommanderError } from "commander";

export const HELP_WIDTH = 100;

/** The program and every visible command below it, parents first. */
export function commandsOf(program: Command): Command[] {
  const visible = program.createHelp().visibleCommands(program);
  return [program, ...visible.filter((command) => command.name() !== "help").flatMap(commandsOf)];
}

/** For example `rollbook batch assemble`. */
export function fullName(command: Command): string {
  return command.parent === null ? command.name() : `${fullName(command.parent)} ${command.name()}`;
}

/** The output of `--help`, with the text that the command adds after it. */
export function helpOf(command: Command): string {
  let text = "";
  command.configureOutput({
    writeOut: (part) => {
      text += part;
    },
    getOutHelpWidth: () => HELP_WIDTH,
    getOutHasColors: () => false,
  });
  command.outputHelp();
  return text;
}

/** The command lines of the section `Example:` or `Examples:` that ends a help text. */
export function examplesOf(help: string): string[][] {
  const section = /\nExamples?:\n((?: .*\n?)+)\s*$/.exec(help)?.[1] ?? "";
  return section
    .replaceAll(/\\\n\s*/g, "")
    .split("\n")
    .map((line) => line.trim().replace(/^\$ /, ""))
    .filter((line) => line.startsWith("rollbook "))
    .map(wordsOf);
}

/** Shell words up to a comment, pipe, redirection or next command. Removes quotes and expands nothing. */
export function wordsOf(line: string): string[] {
  const words: string[] = [];
  for (const match of line.matchAll(/'([^']*)'|"([^"]*)"|([^\s'"]+)/g)) {
    if (match[3] !== undefined && /^(#|\||>|<|&&|;|2>)/.test(match[3])) break;
    words.push((match[1] ?? match[2] ?? match[3])!);
  }
  return words;
}

/** Parses `words` as the program would, without running an action. Throws commander's errors. */
export async function parseOnly(program: Command, words: readonly string[]): Promise<void> {
  for (const command of commandsOf(program)) {
    command.exitOverride().configureOutput({ writeErr: () => {}, writeOut: () => {} });
    // A group has no options of its own, unlike a command with subcommands.
    if (command.parent !== null && command.options.length > 0) command.action(() => {});
  }
  try {
    await program.parseAsync(words.slice(1), { from: "user" });
  } catch (error) {
    const asked = ["commander.helpDisplayed", "commander.version"];
    if (!(error instanceof CommanderError && asked.includes(error.code))) throw error;
  }
}
