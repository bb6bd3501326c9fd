/** What `sim run` and `sim collect` have in common: tasks, models, engine, how much at a time. */
import { readFileSync } from "node:fs";
import { type Command, Option } from "commander";
import { reasonOf } from "../../base/errors.ts";
import { RollbookError } from "../../base/index.ts";
import { DEFAULT_MODELS, parseModels, type SimModel } from "../../collect/sim/models.ts";
import { readTasks } from "../../collect/sim/task-files.ts";
import { type KnownWorld, makeWorld, type SimWorld } from "../../collect/sim/world.ts";
import { parseStaticTable, type StaticTable } from "../../policy/index.ts";
import { positiveWhole, seedOption } from "../command.ts";
import type { BookFlags } from "../with-book.ts";

export const ENGINES = ["auto", "bubblewrap", "docker", "quickjs"] as const;

export type EngineChoice = (typeof ENGINES)[number];

/** How much runs, and under which names. */
export interface PlaceFlags extends BookFlags {
  workers: number;
  samples: number;
  seed: bigint;
  exp: string;
  attempts: number;
}

export interface SimFlags extends PlaceFlags {
  models?: string;
  engine: EngineChoice;
  json?: true;
}

export function addSimOptions(command: Command): Command {
  return command
    .option("--models <file>", "simulated models, in YAML (default: five built-in ones)")
    .addOption(new Option("--engine <engine>", "the sandbox").choices(ENGINES).default("auto"))
    .option("--workers <n>", "rollouts at a time", positiveWhole, 4)
    .option("--samples <n>", "rollouts per task", positiveWhole, 1)
    .option("--exp <id>", "the experiment: another name, other rollouts", "default")
    .option("--attempts <n>", "attempts when a provider, a sandbox or we ourselves fail", positiveWhole, 3)
    .addOption(seedOption("fixes the seeds of all rollouts", 0n));
}

export function worldFrom({ tasks, models }: { tasks: string; models?: string }): SimWorld {
  const declared: readonly SimModel[] =
    models === undefined ? DEFAULT_MODELS : parseModels(readText(models, "--models"), models);
  return makeWorld({ tasks: readTasks(tasks), models: declared });
}

export function tableFrom(path: string, { candidates }: KnownWorld): StaticTable {
  return parseStaticTable(
    readText(path, "a static table"),
    path,
    candidates.map(({ id }) => id),
  );
}

export function readText(path: string, what: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (cause) {
    throw new RollbookError("no-file", { path }, `${path} cannot be read as ${what}: ${reasonOf(cause)}.`, {
      cause,
    });
  }
}
