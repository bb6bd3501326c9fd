/** Implements `rollbook doctor`: checks the requirements of the other commands. Changes nothing. */
import type { Command } from "commander";
import { RollbookError } from "../../../base/index.ts";
import { checkSetup } from "../../../book/maintain/index.ts";
import { keyringOf } from "../../../book/open/index.ts";
import { jsonLine, plural, printable } from "../../../view/format.ts";
import { addCommand } from "../../command.ts";
import type { Io } from "../../io.ts";
import { type BookFlags, bookRoot } from "../../with-book.ts";

export function addDoctor(program: Command, io: Io): void {
  addCommand(program, "doctor", {
    summary: "check Node, SQLite, the book, the signing key, disk space and sandboxes",
    examples: ["rollbook doctor"],
  }).action(async (flags: BookFlags) => {
    const path = io.env.PATH ?? "";
    const findings = await checkSetup({ root: bookRoot(io, flags), keyring: keyringOf(io), path });
    for (const each of findings)
      io.out(
        flags.json
          ? jsonLine(each)
          : `${each.state.padEnd(5)} ${each.check.padEnd(8)} ${printable(each.message)}\n`,
      );
    const bad = findings.filter(({ state }) => state === "bad").map(({ check }) => check);
    if (bad.length > 0)
      throw new RollbookError(
        "not-well",
        { checks: bad },
        `${plural(bad.length, "check")} failed: ${bad.join(", ")}.`,
      );
  });
}
