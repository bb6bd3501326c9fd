/** The command line as one commander program. In: what it may touch, and the words that will be run. Out: the program,
 *  not yet run. Only the command that the words name is loaded: most of a short command's time would go into the others. */
import { readFileSync } from "node:fs";
import { Command } from "commander";
import { withExamples } from "./command.ts";
import { STAGES } from "./commands/index.ts";
import { type Io, processIo } from "./io.ts";
import { requireOutFolder } from "./options/out-folder.ts";

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
      // The caller of the program prints errors, in the requested form.
      outputError: () => {},
      writeErr: (text) => io.err(text),
    });
  program.hook("preAction", (_, command) => {
    requireOutFolder(command);
    return checkOutBook(io, command);
  });
  withExamples(program, ["rollbook demo", "rollbook batch assemble --help"]);
  if (words[0] === "--version") return program;
  for (const [stage, commands] of Object.entries(STAGES)) {
    program.commandsGroup(`${stage}:`);
    for (const [name, load] of Object.entries(commands))
      if (!isNamed(words[0]) || words[0] === name) (await load())(program, io, () => buildProgram(io));
  }
  return program;
}

/** A command on a book in a bucket works on its copy on this machine. */
async function checkOutBook(io: Io, command: Command): Promise<void> {
  if (!command.options.some(({ long }) => long === "--book")) return;
  const book = (command.opts() as { book?: string }).book ?? io.env.ROLLBOOK_BOOK;
  if (book === undefined || !book.startsWith("s3://")) return;
  const { workingCopy } = await import("../book/open/index.ts");
  command.setOptionValue("book", await workingCopy(book, io.env));
}

/** Where none is named all are loaded: for the help, and for the nearest name of a typo. */
function isNamed(first: string | undefined): boolean {
  return first !== undefined && Object.values(STAGES).some((commands) => Object.hasOwn(commands, first));
}

function packageVersion(): string {
  const text = readFileSync(new URL("../../package.json", import.meta.url), "utf8");
  return (JSON.parse(text) as { version: string }).version;
}
