/** `rollbook sim replay`: serves recorded answers of real models as an upstream for a gateway. */
import { existsSync } from "node:fs";
import type { Command } from "commander";
import { RollbookError } from "../../../base/index.ts";
import { readRecorded } from "../../../book/sim/index.ts";
import { recordedModels, recordedRows, serveOnLoopback } from "../../../collect/sim/index.ts";
import { writeAtomically } from "../../../store/index.ts";
import { jsonLine, plural } from "../../../view/format.ts";
import { addCommand, wholeNumber } from "../../command.ts";
import { interrupted } from "../../interrupted.ts";
import type { Io } from "../../io.ts";

interface ReplayFlags {
  recorded: string;
  port: number;
  rows?: string;
  json?: true;
}

export function addSimReplay(sim: Command, io: Io): void {
  addCommand(sim, "replay", {
    summary: "serve recorded answers of real models as an upstream",
    description: `Serve recorded answers of real models as an OpenAI-compatible upstream on loopback, until interrupted. A prompt
that is not on record is answered 404. With --rows the questions are written as tasks for launch, with what was right as
their label.`,
    examples: ["rollbook sim replay --recorded recorded.yaml --port 0"],
    book: false,
  })
    .requiredOption("--recorded <file>", "the description of the recorded answers, in YAML")
    .option("--port <n>", "listen on this port of 127.0.0.1", wholeNumber, 8792)
    .option("--rows <file>", "also write the questions as task rows; never overwritten")
    .action((flags: ReplayFlags) => serve(io, flags));
}

async function serve(io: Io, { recorded, port, rows, json }: ReplayFlags): Promise<void> {
  const set = await readRecorded(recorded);
  if (rows !== undefined) {
    if (existsSync(rows))
      throw new RollbookError("exists", { path: rows }, `${rows} is there already. Name another file.`);
    const lines = recordedRows(set).map((row) => `${JSON.stringify(row)}\n`);
    writeAtomically(rows, Buffer.from(lines.join("")), `${rows}.part`);
  }
  const { url, close } = await serveOnLoopback(recordedModels(set), port);
  const models = set.models.map(({ name }) => name);
  io.out(json ? jsonLine({ url, models, questions: set.questions.length }) : `${url}\n`);
  io.err(`${plural(set.questions.length, "question")}, answered by ${models.join(", ")}\n`);
  await interrupted();
  await close();
}
