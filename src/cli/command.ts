/** Declares commands: every one has --json, those on a book have --book, and every help ends with examples. */
import { type Command, InvalidArgumentError, Option } from "commander";

const BOOK_HELP = "the book's directory (default: $ROLLBOOK_BOOK, else .rollbook)";

/** Adds a command under `parent`. `examples` are printed at the end of its help and run unchanged. `book`: false if the
 *  command works on no book; a text if it finds its book in another way. */
export function addCommand(
  parent: Command,
  usage: string,
  options: { summary: string; description?: string; examples: readonly string[]; book?: false | string },
): Command {
  const command = parent
    .command(usage)
    .summary(options.summary)
    .description(unwrap(options.description ?? sentence(options.summary)));
  if (options.book !== false) command.option("--book <dir>", options.book ?? BOOK_HELP);
  return withExamples(command.option("--json", "print JSON instead of text"), options.examples);
}

/** Adds a group of commands, such as `rollbook batch`. */
export function addGroup(
  parent: Command,
  name: string,
  options: { summary: string; description?: string; examples: readonly string[] },
): Command {
  const { summary, description = sentence(summary) } = options;
  const group = parent.command(name).summary(summary).description(description);
  return withExamples(group, options.examples);
}

export function withExamples(command: Command, examples: readonly string[]): Command {
  const title = examples.length === 1 ? "Example" : "Examples";
  return command.addHelpText("after", `\n${title}:\n${examples.map((each) => `  ${each}`).join("\n")}`);
}

/** Makes `--seed <n>`. Help shows defaults as JSON, which has no bigint, so the default is also given as text. */
export function seedOption(purpose: string, fallback?: bigint): Option {
  const option = new Option("--seed <n>", purpose).argParser(seedNumber);
  return fallback === undefined ? option : option.default(fallback, String(fallback));
}

/** Commander turns the error into wrong usage. */
function seedNumber(text: string): bigint {
  if (!/^\d{1,20}$/.test(text) || BigInt(text) >= 1n << 64n)
    throw new InvalidArgumentError("It must be a whole number from 0 to 2^64 - 1.");
  return BigInt(text);
}

function sentence(summary: string): string {
  return `${summary[0]!.toUpperCase()}${summary.slice(1)}.`;
}

/** Single line breaks belong to the source; help wraps to the terminal. Empty lines separate paragraphs, and indented
 *  lines stay unchanged. */
function unwrap(text: string): string {
  return text.replaceAll(/(?<!\n)\n(?![\n ])/g, " ");
}
