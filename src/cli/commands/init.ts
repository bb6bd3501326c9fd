/** Implements `rollbook init`: creates a book, and a first project around it. */
import { join } from "node:path";
import type { Command } from "commander";
import { RollbookError } from "../../base/index.ts";
import { initBook, initExample, keyringOf, loadSigner } from "../../book/open/index.ts";
import { jsonLine } from "../../view/format.ts";
import { addCommand } from "../command.ts";
import type { Io } from "../io.ts";
import { type BookFlags, bookRoot } from "../with-book.ts";

interface InitFlags extends BookFlags {
  example?: true;
  upstream?: string;
  /** Name given by the user, if the book is a working copy of a bucket. */
  bookUrl?: string;
}

export function addInit(program: Command, io: Io): void {
  addCommand(program, "init", {
    summary: "create a book, the directory that holds all records",
    description: `Create a book, the directory that holds all records. An existing book is not changed. With --example
it also writes a first project: a gateway's configuration, an agent, tasks, a training loop and a server with two
simulated models, which needs no key. docs/tutorial.md walks through it.`,
    examples: ["rollbook init", "rollbook init --book runs/.rollbook", "rollbook init --example first"],
  })
    .argument("[dir]", "directory of the project; the book is .rollbook in it (default: the current one)")
    .option("--example", "also write the files of a first project; none is overwritten")
    .option("--upstream <url>", "base URL of the example's models (default: the simulated ones)")
    .action((dir: string | undefined, flags: InitFlags) => init(io, dir, flags));
}

async function init(io: Io, dir: string | undefined, flags: InitFlags): Promise<void> {
  const { example, upstream } = flags;
  if (upstream !== undefined && example === undefined)
    throw new RollbookError(
      "wrong-usage",
      { upstream },
      "--upstream has no effect without --example. Remove it, or add --example.",
    );
  if (flags.book !== undefined && dir !== undefined && example === undefined)
    throw new RollbookError(
      "wrong-usage",
      { dir, book: flags.book },
      `the book is either ${join(dir, ".rollbook")} or ${flags.bookUrl ?? flags.book}. Remove the directory, or the name of the book (--book, ROLLBOOK_BOOK).`,
    );
  const files = example === undefined ? [] : initExample(dir ?? ".", { upstream });
  const root = flags.book ?? (dir === undefined ? bookRoot(io, flags) : join(dir, ".rollbook"));
  const made = await initBook(root, { clock: io.clock });
  if (flags.json) io.out(jsonLine({ ...made, book: flags.bookUrl ?? made.book, files }));
  else {
    io.out(
      `${flags.bookUrl ?? made.book}: ${made.created ? "created" : "is already a book, and was not changed"}\n`,
    );
    io.out(files.map((file) => `${file}: written\n`).join(""));
  }
  if (example !== undefined)
    io.err(
      `next: ${dir === undefined ? "" : `cd ${shellWord(dir)}; `}${upstream === undefined ? "node model.mjs & " : ""}${calledAs(io)} run start --config loop.yaml\n${upstream === undefined ? "" : OWN_SERVER}the tutorial walks through it, with the gateway: docs/tutorial.md in the package\n`,
    );
  if (loadSigner(keyringOf(io)) === undefined)
    io.err("there is no key to sign with yet: `rollbook keys new` makes one\n");
}

/** The templates name the models of model.mjs. */
const OWN_SERVER =
  "before that: in gateway.yaml, set `model` of each model to a name that your server knows, and keyEnv of the upstream if it needs a key\n";

/** Quotes a text for a shell: a folder may have spaces in its name. */
function shellWord(text: string): string {
  return /^[\w./@%+=:,-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** Name under which this command was called: a command that npx runs need not be on the PATH. */
function calledAs({ env }: Io): string {
  return env.npm_command === "exec" ? "npx rollbook" : "rollbook";
}
