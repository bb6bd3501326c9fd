/** A benchmark of several parts, each with its own rows: one table, and the missed bars. */
import { parseArgs } from "node:util";
import { isRollbookError, RollbookError } from "../../src/base/errors.ts";
import { rngFrom } from "../../src/base/rng.ts";
import { type JudgePart, type JudgeRow, row } from "../judge/part.ts";
import { printTable } from "./interleave.ts";
import { TrialFile } from "./trial-file.ts";

const ABSENT = "not measured";

/** Flags: --data DIR, --only PART, --scale N, --seed N, --json. To run long parts in pieces: repeat with --trials FILE
 *  --seconds N until the table is printed. */
export async function runParts(PARTS: readonly JudgePart[], args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    options: {
      data: { type: "string", default: process.env.ROLLBOOK_DATA ?? "../shared/data" },
      only: { type: "string" },
      scale: { type: "string", default: "1" },
      seed: { type: "string", default: "1" },
      trials: { type: "string" },
      seconds: { type: "string", default: "Infinity" },
      json: { type: "boolean", default: false },
    },
  });
  const parts = PARTS.filter(({ name }) => values.only === undefined || name === values.only);
  if (parts.length === 0) {
    const known = PARTS.map(({ name }) => name).join(", ");
    throw new RollbookError(
      "unknown-name",
      { part: values.only },
      `no part is called ${values.only}. Known: ${known}.`,
    );
  }
  const rows: JudgeRow[] = [];
  const trials = new TrialFile({ path: values.trials, seconds: Number(values.seconds) });
  for (const part of parts) {
    const rng = rngFrom(BigInt(values.seed)).split(part.name);
    rows.push(...(await rowsOf(part, { data: values.data, rng, scale: Number(values.scale), trials })));
  }
  printTable(
    rows.map((each) => ({ ...each })),
    args,
  );
  const missed = rows.filter(({ met }) => met === "NO").length;
  const absent = rows.filter(({ figure }) => figure === ABSENT).map(({ set }) => set);
  const bars = missed === 0 ? "every bar that was measured is met" : `${missed} figures miss their bar`;
  process.stderr.write(`${bars}${absent.length === 0 ? "" : `; not measured: ${absent.join(", ")}`}\n`);
}

/** Missing data gives a row that says so, and the table continues. */
async function rowsOf(part: JudgePart, options: Parameters<JudgePart["run"]>[0]): Promise<JudgeRow[]> {
  try {
    return await part.run(options);
  } catch (error) {
    if (!isRollbookError(error, "data-absent")) throw error;
    return [row(part.name, ABSENT, error.message)];
  }
}
