/** Implements `rollbook sim`: tasks with hidden tests, agents that act in sandboxes, models whose optimum is known. */
import type { Command } from "commander";
import { addGroup } from "../../command.ts";
import type { Io } from "../../io.ts";
import { addSimCollect } from "./collect.ts";
import { addSimGenerate } from "./generate.ts";
import { addSimReplay } from "./replay.ts";
import { addSimRun } from "./run.ts";

export function addSim(program: Command, io: Io): void {
  const sim = addGroup(program, "sim", {
    summary: "generate and run simulated tasks with hidden tests and a known optimum",
    examples: [
      "rollbook sim generate --count 20 --seed 7 --engine quickjs --out sim-tasks",
      "rollbook sim run --book runs --tasks sim-tasks --agent reference --engine quickjs",
    ],
  });
  addSimGenerate(sim, io);
  addSimRun(sim, io);
  addSimCollect(sim, io);
  addSimReplay(sim, io);
}
