/** Functions shared by the two runners: the list of programs, and the handling of failures.
 *  Exit codes as in the command line: 0 done, 1 failed, 2 wrong usage. */
import { isRollbookError, reasonOf } from "../../src/base/errors.ts";
import type { Programs } from "./programs.ts";

const WRONG_USAGE = ["unknown-name", "bad-scale", "bad-seed", "bad-rounds", "bad-options"];

/** Runs `main` and sets the exit code of the process. */
export async function command(main: () => Promise<number>): Promise<void> {
  const { code, said } = await outcomeOf(main);
  if (said !== undefined) process.stderr.write(`${said}\n`);
  process.exitCode = code;
}

/** The exit code, and a message for a thrown error. */
export async function outcomeOf(main: () => Promise<number>): Promise<{ code: number; said?: string }> {
  try {
    return { code: await main() };
  } catch (error) {
    const usage = isRollbookError(error) ? WRONG_USAGE.includes(error.code) : isParseArgsError(error);
    // An error of another type is a defect: print its stack.
    const brief = usage || isRollbookError(error) || !(error instanceof Error);
    return { code: usage ? 2 : 1, said: (brief ? reasonOf(error) : error.stack) ?? "" };
  }
}

export async function list(programs: Programs<{ summary: string }>, json: boolean): Promise<void> {
  const rows = await Promise.all(
    programs.names.map(async (name) => ({ name, summary: (await programs.load(name)).summary })),
  );
  if (json) console.log(JSON.stringify(rows));
  else for (const { name, summary } of rows) console.log(`${name.padEnd(14)} ${summary}`);
}

function isParseArgsError(error: unknown): boolean {
  return error instanceof Error && "code" in error && String(error.code).startsWith("ERR_PARSE_ARGS");
}
