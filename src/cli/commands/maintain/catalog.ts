/** Implements `rollbook catalog`: the index of a book, which can always be rebuilt from the bytes. */
import type { Command } from "commander";
import { rebuildCatalog } from "../../../book/open/index.ts";
import { jsonLine, plural } from "../../../view/format.ts";
import { addCommand, addGroup } from "../../command.ts";
import type { Io } from "../../io.ts";
import { type BookFlags, withBook } from "../../with-book.ts";

export function addCatalog(program: Command, io: Io): void {
  const group = addGroup(program, "catalog", {
    summary: "maintain the catalog, the index over the book",
    examples: ["rollbook catalog rebuild"],
  });
  addCommand(group, "rebuild", {
    summary: "delete the catalog and build it again from the packs of the book",
    examples: ["rollbook catalog rebuild"],
  }).action(async (flags: BookFlags) => {
    const report = await withBook(io, flags, rebuildCatalog);
    if (flags.json) io.out(jsonLine(report));
    else {
      io.out(`${plural(report.records, "record")} and ${plural(report.blobs, "blob")} listed\n`);
      if (report.damaged + report.undescribed > 0)
        io.err(
          `${plural(report.damaged + report.undescribed, "entry")} could not be read: \`rollbook verify\` names them\n`,
        );
    }
  });
}
