/** Runs one command line to its exit code: 0 done, 1 failed or refused, 2 wrong usage. */
import { CommanderError } from "commander";
import { RollbookError } from "../base/index.ts";
import { renderError } from "../view/format.ts";
import type { Io } from "./io.ts";
import { buildProgram } from "./program.ts";

export async function run(words: readonly string[], io: Io): Promise<number> {
  const json = words.includes("--json");
  const debug = io.env.ROLLBOOK_DEBUG === "1";
  try {
    const program = await buildProgram(io, words);
    await program.parseAsync([...words], { from: "user" });
    return 0;
  } catch (error) {
    if (!(error instanceof CommanderError)) {
      io.err(renderError(error, { json, debug }));
      return error instanceof RollbookError && error.code === "wrong-usage" ? 2 : 1;
    }
    if (error.exitCode === 0) return 0; // --help and --version
    io.err(renderError(usageError(error), { json, debug }));
    return 2;
  }
}

/** Commander's own complaint, with the nearest name where it knows one. */
function usageError(error: CommanderError): RollbookError {
  const bare = error.message
    .replace(/^error: /, "")
    .replace(/\n\(?Did you mean (.*?)\?\)?$/, ". Did you mean $1?");
  const [, option] = /^unknown option '(--(?:json|book)\b[^']*)'/.exec(bare) ?? [];
  const place =
    option === undefined ? "" : ` It belongs to a command, after its name: \`rollbook verify ${option}\`.`;
  const message = error.code === "commander.help" ? "name a subcommand" : bare;
  return new RollbookError(
    "wrong-usage",
    { problem: error.code },
    `${message}${/[.?]$/.test(message) ? "" : "."}${place} See --help.`,
    {
      cause: error,
    },
  );
}
