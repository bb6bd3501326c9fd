/** `rollbook sim generate`: tasks from a seed, each proved in a sandbox, in a folder. */
import { type Command, InvalidArgumentError, Option } from "commander";
import { RollbookError } from "../../../base/index.ts";
import { ENGINES, type EngineChoice } from "../../../book/sim/index.ts";
import { openSandbox, type Sandbox } from "../../../collect/sandbox/index.ts";
import {
  DIFFICULTIES,
  type Difficulty,
  FAMILIES,
  type Family,
  familyNamed,
  type GeneratedTask,
  gatherProofs,
  generateTasks,
  refuseExisting,
  type TaskRejection,
  type TasksMeta,
  writeTasks,
} from "../../../collect/sim/index.ts";
import { jsonLine, plural, table } from "../../../view/format.ts";
import { addCommand, positiveWhole, seedOption } from "../../command.ts";
import type { Io } from "../../io.ts";

interface Flags {
  count: number;
  seed: bigint;
  out: string;
  families?: readonly string[];
  difficulty: readonly Difficulty[];
  engine: EngineChoice;
  workers: number;
  prove: boolean;
  json?: true;
}

export function addSimGenerate(sim: Command, io: Io): void {
  const command = addCommand(sim, "generate", {
    summary: "make tasks from a seed and prove each one in a sandbox",
    description: `Make tasks from a seed, families and difficulties taking turns. Each is proved in a sandbox, twice: its start
fails, its reference solution passes, its mutants fail hidden tests. A draw that cannot be proved is replaced by the next.

The folder holds tasks.jsonl (rows for launch: prompt, label, metadata), solutions.jsonl (for simulated models only), packages.jsonl and
tasks.meta.json. The same seed gives the same bytes. Families: ${FAMILIES.map((each) => each.name).join(", ")}.`,
    examples: [
      "rollbook sim generate --count 20 --seed 7 --engine quickjs --out sim-tasks",
      "rollbook sim generate --count 6 --families js-bugfix,grid-planning --difficulty 2-4 --no-prove --out few-tasks",
    ],
    book: false,
  });
  command
    .requiredOption("--out <dir>", "the folder to write; never overwritten")
    .option("--count <n>", "tasks", positiveWhole, 100)
    .addOption(seedOption("fixes every task", 0n))
    .option("--families <names>", "only these, comma separated (default: all that the engine runs)", names)
    .addOption(
      new Option("--difficulty <range>", "from 1 to 5, as in 3 or 2-4")
        .argParser(difficultyRange)
        .default(DIFFICULTIES, "1-5"),
    )
    .addOption(new Option("--engine <engine>", "the sandbox").choices(ENGINES).default("auto"))
    .option("--workers <n>", "programs at a time", positiveWhole, 4)
    .option("--no-prove", "only draw the tasks: nothing is run")
    .action((flags: Flags) => generate(io, flags));
}

async function generate(io: Io, flags: Flags): Promise<void> {
  refuseExisting(flags.out);
  // Named families are checked before anything is opened.
  const wanted = flags.families?.map(familyNamed) ?? FAMILIES;
  const sandbox = flags.prove
    ? await openSandbox({ engine: flags.engine, workers: flags.workers })
    : undefined;
  try {
    const families = runnable(io, flags, wanted, sandbox);
    const rejections: TaskRejection[] = [];
    const tasks: GeneratedTask[] = [];
    const drawn = generateTasks({
      count: flags.count,
      seed: flags.seed,
      families,
      difficulties: flags.difficulty,
      // Enough under way to fill every program, and the next.
      parallel: 12 * flags.workers,
      onRejected: (rejection) => rejections.push(rejection),
      ...(sandbox === undefined ? {} : { prove: gatherProofs(sandbox) }),
    });
    for await (const task of drawn) {
      tasks.push(task);
      if (io.live)
        io.err(`\r${tasks.length} of ${plural(flags.count, "task")}, ${rejections.length} draws replaced`);
    }
    if (io.live) io.err("\n");
    const meta = writeTasks(flags.out, tasks, { seed: flags.seed, rejections });
    io.out(flags.json ? jsonLine({ out: flags.out, ...meta }) : render(flags.out, meta));
  } finally {
    await sandbox?.close();
  }
}

/** A family that was named and cannot be run is an error; one that was not named is left out, and that is said. */
function runnable(
  io: Io,
  flags: Flags,
  wanted: readonly Family[],
  sandbox: Sandbox | undefined,
): readonly Family[] {
  const engine = sandbox?.engine ?? flags.engine;
  const runs = (family: Family) =>
    sandbox === undefined
      ? engine !== "quickjs" || family.language === "javascript"
      : sandbox.runs.has(family.language);
  const left = wanted.filter((family) => !runs(family)).map((family) => family.name);
  if (left.length === 0) return wanted;
  if (flags.families !== undefined)
    throw new RollbookError(
      "family-not-runnable",
      { families: left, engine },
      `the ${engine} engine does not run ${left.join(", ")}. Choose another engine with --engine, or leave them out.`,
    );
  io.err(`the ${engine} engine runs JavaScript only: without ${left.join(", ")}\n`);
  return wanted.filter(runs);
}

function render(out: string, meta: TasksMeta): string {
  const rows = Object.keys(meta.counts);
  const count = (family: string, difficulty: number) => meta.counts[family]?.[difficulty] ?? 0;
  const rejected = (family: string) =>
    Object.values(meta.rejections[family] ?? {}).reduce((a, b) => a + b, 0);
  const families = table(rows, [
    { title: "FAMILY", cell: (family) => family },
    ...DIFFICULTIES.map((difficulty) => ({
      title: `D${difficulty}`,
      align: "right" as const,
      cell: (family: string) => String(count(family, difficulty)),
    })),
    {
      title: "TASKS",
      align: "right",
      cell: (family) => String(DIFFICULTIES.reduce((sum, d) => sum + count(family, d), 0)),
    },
    { title: "REPLACED", align: "right", cell: (family) => String(rejected(family)) },
  ]);
  const reasons = Object.entries(meta.rejections).flatMap(([family, by]) =>
    Object.entries(by).map(([reason, times]) => ({ family, reason, times })),
  );
  const why = table(reasons, [
    { title: "REPLACED", cell: (each) => each.family },
    { title: "DRAWS", align: "right", cell: (each) => String(each.times) },
    { title: "BECAUSE", cell: (each) => each.reason },
  ]);
  const proved = meta.engine === null ? "not proved" : `proved twice in ${meta.engine}`;
  return `${families}\n${reasons.length === 0 ? "" : `${why}\n`}${plural(meta.tasks, "task")} in ${out}, ${proved}\n`;
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
