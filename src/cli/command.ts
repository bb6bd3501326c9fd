/** How commands are declared: every one has --json, those on a book have --book, all end their help with examples. */
import { type Command, InvalidArgumentError, Option } from "commander";

/** A command under `parent`. `examples` stand at the end of its help and run as they are. */
export function addCommand(
  parent: Command,
  usage: string,
  options: { summary: string; description?: string; examples: readonly string[]; book?: boolean },
): Command {
  const command = parent
    .command(usage)
    .summary(options.summary)
    .description(unwrap(options.description ?? sentence(options.summary)));
  if (options.book !== false)
    command.option("--book <dir>", "the book's directory (default: $ROLLBOOK_BOOK, else .rollbook)");
  return withExamples(command.option("--json", "print JSON instead of text"), options.examples);
}

/** A group of commands: `rollbook batch`. */
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

/** `--seed <n>`. Help shows defaults as JSON, which has no bigint, so the default is given as text too. */
export function seedOption(purpose: string, fallback?: bigint): Option {
  const option = new Option("--seed <n>", purpose).argParser(seedNumber);
  return fallback === undefined ? option : option.default(fallback, String(fallback));
}

/** Commander turns the error into wrong usage. */
function seedNumber(text: string): bigint {
  if (!/^\d{1,20}$/.test(text) || BigInt(text) >= 1n << 64n)
    throw new InvalidArgumentError("It must be a whole number below 2^64.");
  return BigInt(text);
}

function sentence(summary: string): string {
  return `${summary[0]!.toUpperCase()}${summary.slice(1)}.`;
}

/** Single line breaks belong to the source; help wraps to the terminal. Empty lines part paragraphs, and
 *  indented lines stay as they are. */
function unwrap(text: string): string {
  return text.replaceAll(/(?<!\n)\n(?![\n ])/g, " ");
}
