/** The whole command line as one commander program. In: what it may touch. Out: the program, not yet run. */
import { readFileSync } from "node:fs";
import { Command } from "commander";
import { withExamples } from "./command.ts";
import { addArtifact } from "./commands/artifact.ts";
import { addBatch } from "./commands/batch.ts";
import { addCatalog } from "./commands/catalog.ts";
import { addData } from "./commands/data.ts";
import { addDemo } from "./commands/demo.ts";
import { addDoctor } from "./commands/doctor.ts";
import { addEvaluate } from "./commands/evaluate.ts";
import { addFeedback } from "./commands/feedback.ts";
import { addGate } from "./commands/gate.ts";
import { addGateway } from "./commands/gateway.ts";
import { addGc } from "./commands/gc.ts";
import { addInit } from "./commands/init.ts";
import { addKeys } from "./commands/keys.ts";
import { addLaunch } from "./commands/launch.ts";
import { addReplay } from "./commands/replay.ts";
import { addReward } from "./commands/reward.ts";
import { addSchema } from "./commands/schema.ts";
import { addSim } from "./commands/sim.ts";
import { addTrain } from "./commands/train.ts";
import { addVerify } from "./commands/verify.ts";
import { addWorker } from "./commands/worker.ts";
import { type Io, processIo } from "./io.ts";

export function buildProgram(io: Io = processIo()): Command {
  const program = new Command("rollbook");
  program
    .description("Rollbook turns an agent's runs into better policies, and can prove how.")
    .version(packageVersion(), "--version", "print the version")
    .helpOption("-h, --help", "print this help")
    .helpCommand("help [command]", "print the help of a command")
    .showSuggestionAfterError()
    .exitOverride()
    .configureOutput({
      writeOut: (text) => io.out(text),
      // Errors are printed by whoever runs the program, in the form that was asked for.
      outputError: () => {},
      writeErr: (text) => io.err(text),
    });
  withExamples(program, ["rollbook demo", "rollbook batch assemble --help"]);
  addDemo(program, io);
  addInit(program, io);
  addKeys(program, io);
  addGateway(program, io);
  addLaunch(program, io);
  addWorker(program, io);
  addFeedback(program, io);
  addSim(program, io);
  addArtifact(program, io);
  addBatch(program, io);
  addReplay(program, io);
  addData(program, io);
  addReward(program, io);
  addTrain(program, io);
  addEvaluate(program, io);
  addGate(program, io);
  addVerify(program, io);
  addSchema(program, io);
  addCatalog(program, io);
  addGc(program, io);
  addDoctor(program, io);
  return program;
}

function packageVersion(): string {
  const text = readFileSync(new URL("../../package.json", import.meta.url), "utf8");
  return (JSON.parse(text) as { version: string }).version;
}
