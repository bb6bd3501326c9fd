/** Runs one command line and returns its exit code: 0 done, 1 failed or refused, 2 wrong usage. */
import { type Command, CommanderError } from "commander";
import { asSentence, nearestName, RollbookError } from "../base/index.ts";
import { renderError } from "../view/format.ts";
import type { Io } from "./io.ts";
import { buildProgram } from "./program.ts";

export async function run(words: readonly string[], io: Io): Promise<number> {
  const json = words.includes("--json");
  const debug = io.env.ROLLBOOK_DEBUG === "1";
  let siblings: readonly string[] = [];
  let program: Command | undefined;
  try {
    program = await buildProgram(io, words);
    const unknown = unknownCommand(program, words);
    siblings = unknown?.siblings ?? [];
    await program.parseAsync(unknown?.path ?? [...words], { from: "user" });
    return 0;
  } catch (error) {
    if (!(error instanceof CommanderError)) {
      io.err(renderError(withHelpOf(error, program, words), { json, debug }));
      return error instanceof RollbookError && error.code === "wrong-usage" ? 2 : 1;
    }
    if (error.exitCode === 0) return 0; // --help and --version
    const found =
      (await unknownOption(program, words, error)) ??
      missingOptions(program, words, error) ??
      unnamedData(program, words, error) ??
      usageError(error, siblings);
    io.err(renderError(withHelpOf(found, program, words), { json, debug }));
    return 2;
  }
}

/** Words up to a command that does not exist, without the request for help, and the commands of its group. Undefined if
 *  all commands exist. Without this check, Commander would print the help of the group for `route why --help`, as if
 *  `why` were one of its commands. */
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
      // The commands of the program itself would fill a page: --help lists them.
      const siblings = group === program ? [] : group.commands.map((each) => each.name());
      return { path, siblings: siblings.filter((name) => name !== "help") };
    }
    group = next;
  }
  return undefined;
}

/** Error for an option that the command does not have. It comes before the error for a missing required option, because
 *  both may be one typo. Names the nearest option, else the commands that have it. */
async function unknownOption(
  program: Command | undefined,
  words: readonly string[],
  { code, message }: CommanderError,
): Promise<RollbookError | undefined> {
  if (code !== "commander.unknownOption" && code !== "commander.missingMandatoryOptionValue")
    return undefined;
  if (program === undefined) return undefined;
  const { command, rest } = commandIn(program, words);
  if (command.parent === null) return undefined;
  const end = rest.indexOf("--");
  const option = (end < 0 ? rest : rest.slice(0, end))
    .filter((word) => /^--[a-z]/.test(word))
    .map((word) => word.split("=")[0]!)
    .find((word) => !isOptionOf(command, word));
  if (option === undefined) return undefined;
  const nearest = nearestName(
    option,
    command.options.flatMap(({ long }) => long ?? []),
  );
  const name = pathOf(command);
  const below = command.commands.find((each) => isOptionOf(each, option));
  if (below !== undefined)
    return new RollbookError(
      "wrong-usage",
      { problem: "commander.unknownOption", option },
      `\`${name}\` needs a subcommand before ${option}. Name one, for example \`${pathOf(below)} ${option} …\`. See --help.`,
      { cause: message },
    );
  const remedy = nearest === undefined ? await whoHas(option, command.parent) : ` Did you mean ${nearest}?`;
  return new RollbookError(
    "wrong-usage",
    { problem: "commander.unknownOption", option },
    `\`${name}\` has no option ${option}.${remedy} See --help.`,
    { cause: message },
  );
}

/** Sentence with the commands whose help has an option, those of the same group first. */
async function whoHas(option: string, group: Command): Promise<string> {
  // Only the program without words has all commands.
  const all = commandsBelow(await buildProgram())
    .filter((each) => each.options.some(({ long, hidden }) => long === option && !hidden))
    .map(pathOf);
  const near = all.filter((path) => group.parent !== null && path.startsWith(`${pathOf(group)} `));
  const paths = [...new Set([...near, ...all])];
  if (paths.length === 0) return "";
  const more = paths.length > MOST_COMMANDS ? ` and ${paths.length - MOST_COMMANDS} more` : "";
  const named = paths.slice(0, MOST_COMMANDS).join(", ");
  return ` ${paths.length === 1 ? "This command has it" : "These have it"}: ${named}${more}.`;
}

const MOST_COMMANDS = 6;

function commandsBelow(command: Command): Command[] {
  return command.commands.flatMap((each) => [each, ...commandsBelow(each)]);
}

/** Error that lists all missing required options: Commander only names the first. */
function missingOptions(
  program: Command | undefined,
  words: readonly string[],
  { code, message }: CommanderError,
): RollbookError | undefined {
  if (code !== "commander.missingMandatoryOptionValue" || program === undefined) return undefined;
  const { command } = commandIn(program, words);
  const missing = command.options
    .filter((each) => each.mandatory && command.getOptionValue(each.attributeName()) === undefined)
    .map(({ flags }) => `'${flags}'`);
  if (missing.length < 2) return undefined;
  return new RollbookError(
    "wrong-usage",
    { problem: code },
    `required options ${missing.join(", ")} not specified. See --help.`,
    { cause: message },
  );
}

/** Error for a file that is given without its option. */
function unnamedData(
  program: Command | undefined,
  words: readonly string[],
  { code, message }: CommanderError,
): RollbookError | undefined {
  if (code !== "commander.excessArguments" || program === undefined) return undefined;
  const { command } = commandIn(program, words);
  if (command.registeredArguments.length > 0 || !isOptionOf(command, "--data")) return undefined;
  return new RollbookError(
    "wrong-usage",
    { problem: code },
    `\`${pathOf(command)}\` takes no argument. Name the dataset with --data. See --help.`,
    { cause: message },
  );
}

/** Command that the words name, and the words after it. */
function commandIn(
  program: Command,
  words: readonly string[],
): { command: Command; rest: readonly string[] } {
  const [first, ...rest] = words;
  const next = program.commands.find((each) => each.name() === first);
  return next === undefined ? { command: program, rest: words } : commandIn(next, rest);
}

/** Adds the command line of the help to an error of wrong usage. */
function withHelpOf(error: unknown, program: Command | undefined, words: readonly string[]): unknown {
  if (program === undefined || !(error instanceof RollbookError) || error.code !== "wrong-usage")
    return error;
  const { command } = commandIn(program, words);
  const message = error.message.replace(/See --help\.$/, `See \`${pathOf(command)} --help\`.`);
  return new RollbookError(error.code, error.fields, message, { cause: error });
}

function isOptionOf(command: Command, option: string): boolean {
  return command.options.some(({ long }) => long === option) || option === "--help";
}

function pathOf(command: Command): string {
  return command.parent === null ? command.name() : `${pathOf(command.parent)} ${command.name()}`;
}

/** Converts Commander's own error, with the nearest name if Commander gives one. */
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
    `${asSentence(message)}${place} See --help.`,
    { cause: error },
  );
}
