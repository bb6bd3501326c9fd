/** Defines the options that `sim run` and `sim collect` share: tasks, models, engine, concurrency. */
import { type Command, Option } from "commander";
import { RollbookError } from "../../base/index.ts";
import { ENGINES, type EngineChoice } from "../../book/sim/index.ts";
import type { Progress } from "../../collect/rollout/index.ts";
import { plural } from "../../view/format.ts";
import { seedOption } from "../command.ts";
import type { Io } from "../io.ts";
import { type BookFlags, bookRoot } from "../with-book.ts";
import { positiveWhole } from "./numbers.ts";
import { identityFrom } from "./run-options.ts";

/** Size of the run, and its names. */
interface PlaceFlags extends BookFlags {
  workers: number;
  samples: number;
  seed: bigint;
  exp: string;
  attempts: number;
}

export interface SimFlags extends PlaceFlags {
  models?: string;
  engine: EngineChoice;
}

export function addSimOptions(command: Command): Command {
  return command
    .option("--models <file>", "simulated models, in YAML (default: five built-in ones)")
    .addOption(
      new Option(
        "--engine <engine>",
        "the sandbox that runs programs; auto is bubblewrap where it works, else quickjs, which runs JavaScript only",
      )
        .choices(ENGINES)
        .default("auto"),
    )
    .option("--workers <n>", "rollouts at a time", positiveWhole, 4)
    .option("--samples <n>", "rollouts per task", positiveWhole, 1)
    .option("--exp <id>", "name of the experiment; a new name gives new rollouts", "default")
    .option(
      "--attempts <n>",
      "attempts if the provider, the sandbox or the infrastructure fails",
      positiveWhole,
      3,
    )
    .addOption(seedOption("fixes the seeds of all rollouts", 0n));
}

/** Converts the flags for book, names and concurrency. */
export function placeRequest(io: Io, flags: SimFlags) {
  const { samples, seed, exp, workers, attempts, engine } = flags;
  return {
    ...{ book: bookRoot(io, flags), samples, seed, exp, workers, engine, clock: io.clock },
    attempts: { provider: attempts, sandbox: attempts, infrastructure: attempts },
    identity: () => identityFrom(io),
  };
}

/** Throws if rollouts are missing. Called after all results have been printed. */
export function requireComplete({ total, done, dead }: Progress): void {
  if (total === done) return;
  throw new RollbookError(
    "launch-incomplete",
    { total, done, dead },
    `${total - done} of ${plural(total, "rollout")} not done${dead > 0 ? `, ${dead} set aside` : ""}. Give the same command again to run what is missing.`,
  );
}
