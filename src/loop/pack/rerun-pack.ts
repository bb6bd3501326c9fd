/** Runs a pack again from its own inputs and compares the results.
 *  In: the folder of a pack and an empty one. Out: each compared figure, and differences of this environment from that
 *  of the sealing. Suites, and synchronous loops on the simulator, are functions of their inputs: they must give the
 *  same digests. */
import { cpSync, readFileSync } from "node:fs";
import { join } from "node:path";
import {
  canonicalize,
  type Digest,
  isObject,
  type Json,
  parseJson,
  RollbookError,
} from "../../base/index.ts";
import type { RunPack } from "../../contract/index.ts";
import { parseAblation } from "../../judge/bench/index.ts";
import { readPack } from "../../keep/pack/index.ts";
import { makeDirectory } from "../../store/index.ts";
import type { LoopStatus } from "../../view/runs/loop-view.ts";
import {
  ablate,
  MODELS_FILE,
  parseSuite,
  RESULT_FILE,
  runSuite,
  SUITE_FILE,
  type Suite,
} from "../bench/index.ts";
import { parseLoopConfig } from "../config.ts";
import { runLoop } from "../run-loop.ts";
import { loopResult } from "./loop-result.ts";
import { BOOK_FOLDER, LOOP_FILE, LOOP_RESULT } from "./seal-pack.ts";
import { thisCode } from "./this-code.ts";
import { fileFault } from "./verify-pack.ts";

interface Rerun {
  readonly record: RunPack;
  /** Differences of code and Node that may explain other results. */
  readonly elsewhere: readonly string[];
  /** Paths at which the results differ; empty if they have the same bytes. */
  readonly differences: readonly string[];
}

export async function rerunPack(
  folder: string,
  { work, log }: { work: string; log: (line: string) => void },
): Promise<Rerun> {
  const { record } = readPack(folder);
  const fault = fileFault(folder, record);
  if (fault !== undefined)
    throw new RollbookError(
      "broken-pack",
      { run: record.run.name },
      `the pack is broken, so it was not run again: ${fault}. Get the pack again from where it was sealed.`,
    );
  const again = await runAgain(folder, record, { work, log });
  const file = record.run.kind === "loop" ? LOOP_RESULT : RESULT_FILE;
  const before = parseJson(readFileSync(join(folder, file), "utf8"));
  return { record, elsewhere: elsewhere(record), differences: differing(before, again, "").slice(0, 20) };
}

function runAgain(
  folder: string,
  { run }: RunPack,
  { work, log }: { work: string; log: (line: string) => void },
): Promise<Json> {
  switch (run.kind) {
    case "bench":
      return rerunSuite(folder, (suite, source) =>
        runSuite(suite, { folder: join(work, "run"), source, log }),
      );
    case "ablation": {
      const { varied } = parseAblation(readFileSync(join(folder, RESULT_FILE), "utf8"), RESULT_FILE);
      return rerunSuite(folder, (suite, source) =>
        ablate(suite, varied, { folder: join(work, "run"), source, log }),
      );
    }
    case "loop":
      return rerunLoop(folder, { work, log, digest: run.digest });
    default:
      return run.kind satisfies never;
  }
}

/** Runs the suite of a pack, with the inputs that lie in the pack. */
async function rerunSuite(
  folder: string,
  run: (suite: Suite, source: string) => Promise<object>,
): Promise<Json> {
  const source = readFileSync(join(folder, SUITE_FILE), "utf8");
  const suite = parseSuite(source, SUITE_FILE, folder);
  const own = suite.models === undefined ? suite : { ...suite, models: join(folder, MODELS_FILE) };
  const tasks = "folder" in own.tasks ? { folder: join(folder, "tasks") } : own.tasks;
  return parseJson(canonicalize(await run({ ...own, tasks }, source)));
}

async function rerunLoop(
  folder: string,
  { work, log, digest: began }: { work: string; log: (line: string) => void; digest: Digest },
): Promise<Json> {
  const inputs = join(work, "inputs");
  makeDirectory(inputs);
  cpSync(folder, inputs, { recursive: true, filter: (path) => path !== join(folder, BOOK_FOLDER) });
  const parsed = parseLoopConfig(readFileSync(join(inputs, LOOP_FILE), "utf8"), LOOP_FILE, inputs);
  // An earlier version wrote another digest of the same configuration. All sealed records depend on that digest.
  const config = parsed.isDigest(began) ? { ...parsed, digest: began } : parsed;
  if (config.mode === "asynchronous")
    throw new RollbookError(
      "not-repeatable",
      { mode: config.mode },
      "an asynchronous loop depends on the order of arrival and does not end with the same digests twice. `rollbook verify` checks the pack.",
    );
  const book = join(work, "book");
  requireOwnBaseline(folder);
  const { state } = await runLoop({ config, book, how: "repeat", log });
  return parseJson(loopResult(state, config));
}

/** Policies that the book served besides the releases of the run are no input of the run, so they cannot be
 *  repeated. */
function requireOwnBaseline(folder: string): void {
  const { windows } = parseJson(readFileSync(join(folder, LOOP_RESULT), "utf8")) as unknown as LoopStatus;
  const judged = windows.find(({ baseline }) => baseline !== undefined);
  if (judged === undefined) return;
  throw new RollbookError(
    "not-repeatable",
    { window: judged.window, baseline: judged.baseline },
    `window ${judged.window} was judged against ${judged.baseline}, which its book served and which was not the last release of the run: the run cannot be repeated from its own inputs. \`rollbook verify\` checks the pack.`,
  );
}

function elsewhere({ code, node }: RunPack): string[] {
  const here = thisCode();
  return [
    ...(code.version === here.version ? [] : [`rollbook ${here.version}, sealed with ${code.version}`]),
    ...(code.commit === here.commit
      ? []
      : [`commit ${here.commit ?? "unknown"}, sealed with ${code.commit ?? "unknown"}`]),
    ...(code.dirty === true ? ["sealed with files that differed from the commit"] : []),
    ...(node === process.version ? [] : [`Node ${process.version}, sealed with ${node}`]),
  ];
}

/** Paths at which two JSON values differ. */
function differing(a: unknown, b: unknown, path: string): string[] {
  if (Object.is(a, b)) return [];
  if (Array.isArray(a) && Array.isArray(b) && a.length === b.length)
    return a.flatMap((each, i) => differing(each, b[i], `${path}[${i}]`));
  if (isObject(a) && isObject(b)) {
    const keys = [...new Set([...Object.keys(a), ...Object.keys(b)])].sort();
    return keys.flatMap((key) => differing(a[key], b[key], path === "" ? key : `${path}.${key}`));
  }
  return [path === "" ? "the whole result" : path];
}
