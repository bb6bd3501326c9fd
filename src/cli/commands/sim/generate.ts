/** Implements `rollbook sim generate`: writes a folder of tasks from a seed, each proved in a sandbox. */
import { type Command, InvalidArgumentError, Option } from "commander";
import { wrongUsage } from "../../../book/decisions/index.ts";
import { ENGINES, type EngineChoice, generateTaskFolder } from "../../../book/sim/index.ts";
import { DIFFICULTIES, type Difficulty, FAMILIES, noFamily } from "../../../collect/sim/index.ts";
import { jsonLine, plural } from "../../../view/format.ts";
import { renderTasks } from "../../../view/runs/sim-view.ts";
import { addCommand, seedOption } from "../../command.ts";
import type { Io } from "../../io.ts";
import { positiveWhole } from "../../options/numbers.ts";

interface Flags {
  count: number;
  seed: bigint;
  out: string;
  families?: readonly string[];
  familyFile?: readonly string[];
  difficulty: readonly Difficulty[];
  engine: EngineChoice;
  workers: number;
  prove: boolean;
  json?: true;
}

export function addSimGenerate(sim: Command, io: Io): void {
  const command = addCommand(sim, "generate", {
    summary: "generate tasks from a seed and prove each one in a sandbox",
    description: `Generate tasks from a seed, rotating through families and difficulties. A sandbox makes three
checks of each task, each of them twice: the starting files fail the hidden tests, the reference solution passes them, and wrong
variants (mutants) fail them.
A task that fails a check is replaced by the next draw.

The folder holds tasks.jsonl (rows for launch: prompt, label, metadata), solutions.jsonl (for simulated models only),
packages.jsonl and tasks.meta.json. The same seed gives the same bytes. Families: ${FAMILIES.map(
      (each) => each.name,
    ).join(", ")}.`,
    examples: [
      "rollbook sim generate --count 20 --seed 7 --engine quickjs --out sim-tasks",
      "rollbook sim generate --count 5 --family-file node_modules/rollbook/examples/own-family/roman-family.mjs --engine quickjs --out own-tasks",
      "rollbook sim generate --count 6 --families js-bugfix,grid-planning --difficulty 2-4 --no-prove --out few-tasks",
    ],
    book: false,
  });
  command
    .requiredOption("--out <dir>", "the folder to write; never overwritten")
    .option("--count <n>", "number of tasks", positiveWhole, 100)
    .addOption(seedOption("fixes every task", 0n))
    .option(
      "--families <names>",
      "only these families, comma separated (default: all that the engine runs)",
      names,
    )
    .option(
      "--family-file <module...>",
      "ES modules with families of your own; without --families only these",
    )
    .addOption(
      new Option("--difficulty <range>", "difficulty of the tasks from 1 to 5, as in 3 or 2-4")
        .argParser(difficultyRange)
        .default(DIFFICULTIES, "1-5"),
    )
    .addOption(
      new Option(
        "--engine <engine>",
        "the sandbox that runs the checks; auto is bubblewrap where it works, else quickjs, which runs JavaScript only",
      )
        .choices(ENGINES)
        .default("auto"),
    )
    .option("--workers <n>", "programs that run at a time", positiveWhole, 4)
    .option("--no-prove", "only draw the tasks: nothing is run")
    .action((flags: Flags) => generate(io, flags));
}

async function generate(io: Io, flags: Flags): Promise<void> {
  const {
    out,
    count,
    seed,
    families,
    familyFile: familyFiles,
    difficulty: difficulties,
    engine,
    workers,
    prove,
  } = flags;
  // A module may define any name.
  const unknown = familyFiles === undefined ? families?.find(isUnknown) : undefined;
  if (unknown !== undefined) throw wrongUsage(noFamily(unknown));
  const meta = await generateTaskFolder({
    ...{ out, count, seed, families, familyFiles, difficulties, engine, workers, prove },
    onProgress(drawn, replaced) {
      if (io.live) io.err(`\r${drawn} of ${plural(count, "task")}, ${replaced} draws replaced`);
    },
    onLeftOut: (left, by) => io.err(`the ${by} engine runs JavaScript only: without ${left.join(", ")}\n`),
  });
  if (io.live) io.err("\n");
  io.out(flags.json ? jsonLine({ out, ...meta }) : renderTasks(out, meta));
}

function isUnknown(name: string): boolean {
  return FAMILIES.every((each) => each.name !== name);
}

function names(text: string): string[] {
  return text.split(",").map((name) => name.trim());
}

function difficultyRange(text: string): Difficulty[] {
  const found = /^([1-5])(?:-([1-5]))?$/.exec(text);
  const [low, high] = [Number(found?.[1]), Number(found?.[2] ?? found?.[1])];
  if (found === null || low > high)
    throw new InvalidArgumentError("It must be a number from 1 to 5, or a range as in 2-4.");
  return DIFFICULTIES.filter((each) => each >= low && each <= high);
}
