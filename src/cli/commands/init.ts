/** `rollbook init`: creates a book. */
import type { Command } from "commander";
import { initBook, keyringOf, loadSigner } from "../../book/open/index.ts";
import { jsonLine } from "../../view/format.ts";
import { addCommand } from "../command.ts";
import type { Io } from "../io.ts";
import { type BookFlags, bookRoot } from "../with-book.ts";

export function addInit(program: Command, io: Io): void {
  addCommand(program, "init", {
    summary: "create a book, the directory that holds everything",
    description: "Create a book, the directory that holds everything. An existing book is left as it is.",
    examples: ["rollbook init", "rollbook init --book runs/.rollbook"],
  }).action(async (flags: BookFlags) => {
    const made = await initBook(bookRoot(io, flags), { clock: io.clock });
    if (flags.json) io.out(jsonLine(made));
    else io.out(`${made.book}: ${made.created ? "created" : "is a book already, left as it is"}\n`);
    if (loadSigner(keyringOf(io)) === undefined)
      io.err("there is no key to sign with yet: `rollbook keys new` makes one\n");
  });
}
