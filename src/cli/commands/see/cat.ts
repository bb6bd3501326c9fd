/** Implements `rollbook cat`: prints any blob of the book. */
import type { Command } from "commander";
import { RollbookError } from "../../../base/index.ts";
import { readBlob } from "../../../book/open/index.ts";
import { jsonLine, plural } from "../../../view/format.ts";
import { renderBlob } from "../../../view/rollouts/blob-view.ts";
import { addCommand } from "../../command.ts";
import type { Io } from "../../io.ts";
import { type BookFlags, withBook } from "../../with-book.ts";

export function addCat(program: Command, io: Io): void {
  addCommand(program, "cat", {
    summary: "print any blob of the book by its digest",
    description: `Print any blob of the book: a record, a message, a column of numbers, a final state. On a terminal it
is indented and control characters are removed; a pipe or a file gets the exact bytes.`,
    examples: ["rollbook cat r-0001", "rollbook cat r-0001 > content.json"],
  })
    .argument("<digest>", "digest or id of a record, or at least its first 4 characters")
    .option("--raw", "print the exact bytes on a terminal too")
    .action(async (name: string, flags: BookFlags & { raw?: true }) => {
      const { digest, kind, bytes } = await withBook(io, flags, (book) => readBlob(book, name));
      if (flags.json) {
        io.out(
          jsonLine({ digest, kind, bytes: bytes.length, base64: Buffer.from(bytes).toString("base64") }),
        );
        return;
      }
      if (!io.terminal || flags.raw) {
        io.out(bytes);
        return;
      }
      const text = renderBlob(kind, bytes);
      if (text === undefined)
        throw new RollbookError(
          "binary-blob",
          { digest, kind },
          `${kind} ${digest}, ${plural(bytes.length, "byte")}, is not text. Redirect it to a file, or give --raw.`,
        );
      io.out(text);
    });
}
