/** Implements `rollbook sim replay`: serves recorded answers of real models as an upstream for a gateway. */
import type { Command } from "commander";
import { serveRecorded } from "../../../book/sim/index.ts";
import { jsonLine, plural } from "../../../view/format.ts";
import { addCommand } from "../../command.ts";
import { interrupted } from "../../interrupted.ts";
import type { Io } from "../../io.ts";
import { portNumber } from "../../options/numbers.ts";

interface ReplayFlags {
  recorded: string;
  port: number;
  rows?: string;
  json?: true;
}

export function addSimReplay(sim: Command, io: Io): void {
  addCommand(sim, "replay", {
    summary: "serve recorded answers of real models as an upstream",
    description: `Serve recorded answers of real models as an OpenAI-compatible upstream on loopback, until
interrupted. An unknown prompt gets the status 404. --rows writes the questions as tasks for launch, with the
correctness of each answer as their label.`,
    examples: ["rollbook sim replay --recorded recorded.yaml --port 0"],
    book: false,
  })
    .requiredOption("--recorded <file>", "the description of the recorded answers, in YAML")
    .option("--port <n>", "listen on this port of 127.0.0.1; 0 takes a free one", portNumber, 8792)
    .option("--rows <file>", "also write the questions as task rows; never overwritten")
    .action((flags: ReplayFlags) => serve(io, flags));
}

async function serve(io: Io, { json, ...request }: ReplayFlags): Promise<void> {
  const { url, models, questions, close } = await serveRecorded(request);
  io.out(json ? jsonLine({ url, models, questions }) : `${url}\n`);
  io.err(`${plural(questions, "question")}, answered by ${models.join(", ")}\n`);
  await interrupted();
  await close();
}
