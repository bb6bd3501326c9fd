/** Seals run packs of a benchmark suite's folder, and of a finished training loop.
 *  In: the folder or the run. Out: the sealed record; the folder holds copies of everything that the result depends
 *  on. */
import { cpSync, existsSync, rmSync, writeFileSync } from "node:fs";
import { dirname, isAbsolute, join, relative, sep } from "node:path";
import { type Clock, parseId, RollbookError, systemClock } from "../../base/index.ts";
import { useBook } from "../../book/open/index.ts";
import type { RunPack, Sealed, Signer } from "../../contract/index.ts";
import type { Ablation } from "../../judge/bench/index.ts";
import { sealPackFolder } from "../../keep/pack/index.ts";
import { makeDirectory, readText } from "../../store/index.ts";
import type { Suite } from "../bench/index.ts";
import { requireBegun, requireWindows } from "../check-run.ts";
import { type LoopConfig, parseLoopConfig } from "../config.ts";
import { readRun } from "../read-run.ts";
import { loopStatus } from "../status.ts";
import { loopResult } from "./loop-result.ts";
import { thisCode, thisMachine } from "./this-code.ts";

export const LOOP_FILE = "loop.yaml";
export const BOOK_FOLDER = "book";
export const LOOP_RESULT = "results.json";

interface SealOptions {
  readonly signer?: Signer | undefined;
  readonly clock?: Clock;
}

export function sealBenchPack(folder: string, suite: Suite, options: SealOptions = {}): Sealed<RunPack> {
  return sealWith(folder, options, {
    run: { kind: "bench", name: parseId(suite.suite), digest: suite.digest },
    command: ["bench", "run", "--suite", "suite.yaml"],
  });
}

export function sealAblationPack(
  folder: string,
  suite: Suite,
  { varied, ...options }: SealOptions & { varied: Ablation },
): Sealed<RunPack> {
  const { decisions, floors, costWeights, latencyWeights } = varied;
  return sealWith(folder, options, {
    run: { kind: "ablation", name: parseId(suite.suite), digest: suite.digest },
    command: [
      ...["bench", "ablate", "--suite", "suite.yaml", "--decisions", decisions.join(",")],
      ...["--floors", floors.join(","), "--cost-weights", costWeights.join(",")],
      ...["--latency-weights", latencyWeights.join(",")],
    ],
  });
}

/** `file` is the loop's configuration; its run must have ended. `out` must not exist. */
export async function sealLoopPack(
  file: string,
  { out, book: at, ...options }: SealOptions & { out: string; book?: string | undefined },
): Promise<Sealed<RunPack>> {
  const source = readText(file, "the configuration of a loop");
  const config = parseLoopConfig(source, file, dirname(file));
  const book = at ?? config.book ?? ".rollbook";
  const { world } = config;
  if (world.kind !== "simulator")
    throw new RollbookError(
      "not-packable",
      { world: world.kind },
      `${file} runs an agent (world.kind: ${world.kind}). Only loops on the simulator can be packed: the code of an agent and its models are not in the book. To prove the results of this loop, use \`rollbook head\` and \`rollbook verify\`.`,
    );
  const status = await loopStatus(book, config);
  const named = at === undefined ? config.options : `${config.options} --book ${at}`;
  requireBegun(status, { book, config: { options: named } });
  requireWindows(status, { windows: config.windows, options: named });
  if (status.digest === undefined)
    throw new RollbookError(
      "run-not-ended",
      { run: config.run, ended: status.ended, windows: config.windows },
      `the run ${config.run} has ended ${status.ended} of ${config.windows} windows. Finish it with \`rollbook run resume ${named}\`.`,
    );
  const state = await useBook(book, { mode: "read" }, (open) => readRun(open, config.run));
  if (existsSync(out))
    throw new RollbookError("exists", { out }, `${out} already exists. Choose another path.`);
  makeDirectory(out);
  try {
    copyInputs([world.tasks, world.models, config.table, ...featuresOf(config)], { file, out });
    writeFileSync(join(out, LOOP_FILE), source);
    copyBook(book, join(out, BOOK_FOLDER));
    writeFileSync(join(out, LOOP_RESULT), `${loopResult(state, config)}\n`);
    return sealWith(out, options, {
      run: { kind: "loop", name: parseId(config.run), digest: state.windows[0]!.need("planned").step.config },
      command: ["run", "start", "--config", LOOP_FILE],
    });
  } catch (error) {
    // The same command must work once the cause is corrected.
    rmSync(out, { recursive: true, force: true });
    throw error;
  }
}

/** The digest of the configuration covers the paths in it, so files keep their places relative to it. */
function copyInputs(
  paths: readonly (string | undefined)[],
  { file, out }: { readonly file: string; readonly out: string },
): void {
  for (const path of paths) {
    if (path === undefined) continue;
    const place = relative(dirname(file), path);
    if (isAbsolute(place) || place.startsWith("..") || place.split(sep)[0] === BOOK_FOLDER)
      throw new RollbookError(
        "not-packable",
        { path },
        `${path} does not lie below the folder of ${file}, or lies in ${BOOK_FOLDER}/. Move it beside the configuration.`,
      );
    cpSync(path, join(out, place), { recursive: true });
  }
}

function featuresOf({ learners }: LoopConfig): (string | undefined)[] {
  return learners.map((learner) => ("features" in learner ? learner.features : undefined));
}

function sealWith(
  folder: string,
  { signer, clock = systemClock }: SealOptions,
  facts: Pick<RunPack, "run" | "command">,
): Sealed<RunPack> {
  return sealPackFolder(
    folder,
    {
      ...facts,
      ...{ code: thisCode(), node: process.version, machine: thisMachine(), sealedAtMs: clock.nowMs() },
    },
    signer,
  );
}

/** Copies the sealed records of a book. Catalog, queue, journals and locks can be rebuilt or belong to processes. */
export function copyBook(from: string, to: string): void {
  // A pack does not store empty folders, and a book needs both.
  for (const name of ["packs", "large"]) makeDirectory(join(to, name));
  for (const name of ["book.json", "packs", "large", "head.json"])
    if (existsSync(join(from, name))) cpSync(join(from, name), join(to, name), { recursive: true });
}
