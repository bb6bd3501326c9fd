/** Implements `rollbook head`: writes a signed head of the book, to be kept elsewhere. */
import type { Command } from "commander";
import { writeHead } from "../../../book/maintain/index.ts";
import { requireFree, writeNewFile } from "../../../convert/index.ts";
import { jsonLine } from "../../../view/format.ts";
import { addCommand } from "../../command.ts";
import type { Io } from "../../io.ts";
import { type BookFlags, withBook } from "../../with-book.ts";

export function addHead(program: Command, io: Io): void {
  addCommand(program, "head", {
    summary: "write a signed head of the book and print its digest",
    description: `Write a head, a signed list of all storage files (packs) of the book, and print its digest. Keep the digest
outside the book: \`rollbook verify --expect\` then detects missing, truncated or rewritten packs, and a book that was restored to
an earlier state.`,
    examples: ["rollbook head", "rollbook head --out head.json"],
  })
    .option("--out <file>", "also write the head with its signature here; never overwritten")
    .action(async (flags: BookFlags & { out?: string }) => {
      if (flags.out !== undefined) requireFree(flags.out);
      const { head, record } = await withBook(io, { ...flags, mode: "write" }, writeHead);
      const text = jsonLine({ head, ...record });
      if (flags.out !== undefined) await writeNewFile(flags.out, (file) => file.append(Buffer.from(text)));
      io.out(flags.json ? text : `${head}\n`);
    });
}
