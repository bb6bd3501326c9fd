/** Implements `rollbook bench`: compares learned policies with the static table fitted on the same log, in worlds with
 *  a known optimum. */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type Command, InvalidArgumentError, Option } from "commander";
import { nearestName, RollbookError } from "../../base/index.ts";
import { compareResults, parseResult } from "../../judge/bench/index.ts";
import {
  ablate,
  parseSuite,
  RESULT_FILE,
  runSuite,
  type Suite,
  shippedSuites,
} from "../../loop/bench/index.ts";
import { sealAblationPack, sealBenchPack } from "../../loop/pack/index.ts";
import { jsonLine } from "../../view/format.ts";
import { renderAblation, renderBench, renderChanges } from "../../view/judge/bench-view.ts";
import { addCommand, addGroup } from "../command.ts";
import type { Io } from "../io.ts";
import { signerOf } from "./pack.ts";

interface BenchFlags {
  suite: string;
  out?: string;
  runPackDir?: string;
  json?: true;
}

interface AblateFlags extends BenchFlags {
  decisions: number[];
  floors: number[];
  costWeights: number[];
  latencyWeights: number[];
}

const SUITE = ["--suite <name>", "a suite of the package by name, or a YAML file (docs/prove.md)"] as const;

export function addBench(program: Command, io: Io): void {
  const group = addGroup(program, "bench", {
    summary: "compare learned policies with the best static table, where the optimum is known",
    examples: ["rollbook bench run --suite smoke", "rollbook bench ls"],
  });
  addCommand(group, "run", {
    summary:
      "run a suite: train every arm (a learner with its settings) on the same logs and play held-out tasks",
    description: `Run a suite. Every repetition draws a log, trains every arm on it and plays the held-out tasks with
the same seeds. The baseline is the static table fitted on the same log. VALUE is the exact expected reward. MINUS
TABLE is the difference with its 95 % interval, paired by task and repetition. ABOVE 0 counts the repetitions whose
own interval lies above 0. GAP CLOSED is the part of the distance from the best single model to the optimum that VALUE closes.
PLAYED is the mean reward of the played tasks. The same suite gives the same result on every machine.`,
    examples: [
      "rollbook bench run --suite smoke",
      "rollbook bench run --suite smoke --out result.json --run-pack-dir smoke-pack",
    ],
    book: false,
  })
    .requiredOption(...SUITE)
    .option("--out <file>", "write the result as JSON; never overwritten")
    .option("--run-pack-dir <dir>", "seal a run pack of the result and its inputs in this new directory")
    .action((flags: BenchFlags) => run(io, flags));
  addCommand(group, "ls", {
    summary: "list the suites of the package",
    examples: ["rollbook bench ls"],
    book: false,
  }).action((flags: { json?: true }) => list(io, flags));
  addCommand(group, "compare", {
    summary: "compare two results of one suite, arm by arm",
    description: `Compare two results of one suite, arm by arm, paired by task and repetition: for example before and
after a change of a learner.`,
    examples: ["rollbook bench compare before.json after.json"],
    book: false,
  })
    .argument("<before>", "a result of `bench run --out`")
    .argument("<after>", "another result of the same suite")
    .action((before: string, after: string, flags: { json?: true }) => compare(io, before, after, flags));
  addCommand(group, "ablate", {
    summary: "run a suite with other reward weights, confidence floors and dataset sizes, in one table",
    description: `Run a suite with other reward weights, confidence floors and dataset sizes, and print one table. All runs share
the tasks of the suite. A pack of it holds what every arm answered on the held-out tasks: \`pack verify\` computes the
table again from that, and \`pack rerun\` trains again.`,
    examples: [
      "rollbook bench ablate --suite smoke --decisions 100,400 --floors 0 --cost-weights 1",
      "rollbook bench ablate --suite smoke --decisions 100,400 --run-pack-dir ablation-pack",
    ],
    book: false,
  })
    .requiredOption(...SUITE)
    .addOption(listOption("--decisions <list>", "training decisions, separated by commas", [500, 2000, 6000]))
    .addOption(listOption("--floors <list>", "confidence floors of the learned arms", [0, 0.5]))
    .addOption(listOption("--cost-weights <list>", "factors on the weight of cost in the reward", [1, 0]))
    .addOption(listOption("--latency-weights <list>", "factors on the weight of latency in the reward", [1]))
    .option("--out <file>", "write the result as JSON; never overwritten")
    .option("--run-pack-dir <dir>", "seal a run pack of the result and its inputs in this new directory")
    .action((flags: AblateFlags) => vary(io, flags));
}

async function run(io: Io, flags: BenchFlags): Promise<void> {
  const { suite, source } = suiteFrom(flags.suite);
  await inRunFolder(io, flags, async ({ folder, log }) => {
    const result = await runSuite(suite, { folder, source, log });
    return {
      shown: flags.json ? jsonLine(result) : renderBench(result),
      seal: (by) => sealBenchPack(folder, suite, by),
    };
  });
}

interface BenchFolder {
  readonly folder: string;
  readonly log: (line: string) => void;
}

interface EndedBench {
  readonly shown: string;
  /** Seals the folder as a pack. */
  readonly seal: (by: { readonly signer: ReturnType<typeof signerOf>; readonly clock: Io["clock"] }) => void;
}

/** Creates a new folder for a run: the pack's, or one that is removed afterwards. */
async function inRunFolder(
  io: Io,
  { out, runPackDir }: BenchFlags,
  use: (made: BenchFolder) => Promise<EndedBench>,
): Promise<void> {
  refuseExistingFile(out);
  refuseExistingFile(runPackDir);
  const temporary = runPackDir === undefined ? mkdtempSync(join(tmpdir(), "rollbook-bench-")) : undefined;
  const folder = runPackDir ?? temporary!;
  try {
    const log = (line: string) => io.err(`${line}\n`);
    const by = runPackDir === undefined ? undefined : { signer: signerOf(io), clock: io.clock };
    const { shown, seal } = await use({ folder, log });
    // Written first, so that a pack that cannot be sealed does not lose the result.
    if (out !== undefined) writeFileSync(out, readFileSync(join(folder, RESULT_FILE)), { flag: "wx" });
    if (by !== undefined) seal(by);
    io.out(shown);
  } finally {
    if (temporary !== undefined) rmSync(temporary, { recursive: true, force: true });
  }
}

function list(io: Io, flags: { json?: true }): void {
  const suites = [...shippedSuites()].map(([name, file]) => ({ name, about: readSuite(file).suite.about }));
  const width = Math.max(...suites.map(({ name }) => name.length));
  io.out(
    flags.json
      ? suites.map(jsonLine).join("")
      : suites.map(({ name, about }) => `${name.padEnd(width)}  ${about}\n`).join(""),
  );
}

function compare(io: Io, before: string, after: string, flags: { json?: true }): void {
  const read = (file: string) => parseResult(readFileSync(file, "utf8"), file);
  const changes = compareResults(read(before), read(after));
  io.out(flags.json ? jsonLine(changes) : renderChanges(changes));
}

async function vary(io: Io, flags: AblateFlags): Promise<void> {
  const { suite, source } = suiteFrom(flags.suite);
  const { decisions, floors, costWeights, latencyWeights } = flags;
  const varied = { decisions, floors, costWeights, latencyWeights };
  await inRunFolder(io, flags, async ({ folder, log }) => {
    const result = await ablate(suite, varied, { folder, source, log });
    return {
      shown: flags.json ? jsonLine(result) : renderAblation(result),
      seal: (by) => sealAblationPack(folder, suite, { ...by, varied }),
    };
  });
}

function suiteFrom(named: string): { suite: Suite; source: string } {
  const shipped = shippedSuites();
  const file = shipped.get(named) ?? named;
  if (existsSync(file)) return readSuite(file);
  const near = nearestName(named, [...shipped.keys()]);
  throw new RollbookError(
    "no-suite",
    { suite: named },
    `there is no suite ${named}, and no such file.${near === undefined ? "" : ` Did you mean ${near}?`} \`rollbook bench ls\` lists the suites of the package.`,
  );
}

function readSuite(file: string): { suite: Suite; source: string } {
  const source = readFileSync(file, "utf8");
  return { suite: parseSuite(source, file, dirname(file)), source };
}

function refuseExistingFile(file: string | undefined): void {
  if (file !== undefined && existsSync(file)) throw exists(file);
}

function exists(path: string): RollbookError {
  return new RollbookError("exists", { path }, `${path} already exists. Choose another path, or remove it.`);
}

/** Help shows the default in the form in which it can be given. */
function listOption(flags: string, purpose: string, fallback: readonly number[]): Option {
  return new Option(flags, purpose).argParser(numbers).default([...fallback], fallback.join());
}

function numbers(text: string): number[] {
  const values = text.split(",").map(Number);
  if (values.some((value) => !Number.isFinite(value) || value < 0))
    throw new InvalidArgumentError("It must be numbers of 0 or more, separated by commas.");
  return values;
}
