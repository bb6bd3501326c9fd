/** Default learners compared with scikit-learn's logistic regression, ridge and nearest neighbours,
 *  on the same splits. */
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { isRollbookError, RollbookError } from "../src/base/errors.ts";
import { rngFrom } from "../src/base/rng.ts";
import type { ValueKind } from "../src/learn/index.ts";
import { compareOnce, loadPeer, type RouterMode, type SplitResult } from "./routers/compare.ts";
import { ROUTER_SETS, type RouterSet } from "./routers/router-set.ts";
import { trainingSpeed } from "./routers/speed.ts";
import { printTable } from "./support/interleave.ts";
import type { Bench } from "./support/programs.ts";
import { PythonPeer } from "./support/python-peer.ts";

const VENV = fileURLToPath(new URL("../.cache/sklearn", import.meta.url));
const PYTHON = join(VENV, "bin", "python");
const PROGRAM = fileURLToPath(new URL("./routers/sklearn_peer.py", import.meta.url));
const LIBRARIES = ["numpy==2.4.6", "scipy==1.17.1", "scikit-learn==1.9.1"];
/** Required share of the peer's gain, if that gain is more than two standard errors. */
const BAR = 0.95;
/** `logged`: one outcome of a question is known. `full`: all are known. */
const MODES: readonly RouterMode[] = ["logged", "full"];
/** Name of the part that measures time and memory. */
const SPEED = "speed";

export const bench: Bench = {
  summary:
    "default learners against scikit-learn, gain over the best single model (--data DIR --only SET --mode logged|full --splits N --from FIRST)",
  async run(args) {
    const { values } = parseArgs({
      args,
      options: {
        data: { type: "string", default: process.env.ROLLBOOK_DATA ?? "../shared/data" },
        only: { type: "string" },
        mode: { type: "string" },
        splits: { type: "string", default: "10" },
        from: { type: "string", default: "1" },
        rows: { type: "string", default: "100000" },
        learners: { type: "string", default: "auto" },
        json: { type: "boolean", default: false },
      },
    });
    install();
    if (values.mode !== undefined && !MODES.includes(values.mode as RouterMode))
      throw unknownName("mode", values.mode, MODES);
    const names = values.only?.split(",") ?? [SPEED, ...Object.keys(ROUTER_SETS)];
    if (names.includes(SPEED)) {
      const peer = new PythonPeer(PYTHON, PROGRAM);
      try {
        printTable(await trainingSpeed(peer, Number(values.rows)), args);
      } finally {
        peer.close();
      }
    }
    const rows: Record<string, string>[] = [];
    for (const name of names.filter((each) => each !== SPEED)) {
      const load = ROUTER_SETS[name];
      if (load === undefined) throw unknownName("set", name, Object.keys(ROUTER_SETS));
      const peer = new PythonPeer(PYTHON, PROGRAM);
      try {
        const set = await load(values.data);
        await loadPeer(peer, set);
        for (const mode of modesOf(set, values.mode))
          rows.push(
            ...(await compare(set, {
              ...{ mode, peer, ours: values.learners },
              ...{ splits: Number(values.splits), from: Number(values.from) },
            })),
          );
      } catch (error) {
        if (!isRollbookError(error, "data-absent")) throw error;
        process.stderr.write(`not measured: ${error.message}\n`);
      } finally {
        peer.close();
      }
    }
    if (rows.length > 0) printTable(rows, args);
  },
};

async function compare(
  set: RouterSet,
  options: { mode: RouterMode; peer: PythonPeer; splits: number; from: number; ours: string },
): Promise<Record<string, string>[]> {
  const { mode, peer, splits, from, ours } = options;
  const results: SplitResult[] = [];
  for (let split = from; split < from + splits; split++) {
    const rng = rngFrom(BigInt(split)).split(set.name);
    const result = await compareOnce(set, { mode, peer, rng, ours: ours.split(",") as ValueKind[] });
    results.push(result);
    process.stderr.write(`${set.name}, ${mode}, split ${split}: ${JSON.stringify(result)}\n`);
  }
  const learners = Object.keys(results[0]!.gains);
  const stats = new Map(learners.map((each) => [each, statsOf(results.map(({ gains }) => gains[each]!))]));
  const peers = learners.filter((each) => each.startsWith("sklearn"));
  const best = peers.reduce((top, each) => (stats.get(each)!.mean > stats.get(top)!.mean ? each : top));
  return learners.map((learner) => {
    const { mean, error } = stats.get(learner)!;
    const share = mean / stats.get(best)!.mean;
    const counts = stats.get(best)!.mean > 2 * stats.get(best)!.error;
    return {
      set: set.name,
      outcomes: mode === "full" ? "all" : "one",
      learner,
      "gain over best single": `${mean.toFixed(4)} ± ${error.toFixed(4)}`,
      "of the peer's best": counts ? share.toFixed(3) : "peer gains nothing",
      met: learner !== "auto" || !counts ? "" : share >= BAR ? "yes" : "NO",
      seconds: (results.reduce((sum, { seconds }) => sum + seconds[learner]!, 0) / results.length).toFixed(1),
    };
  });
}

function statsOf(values: readonly number[]): { mean: number; error: number } {
  const mean = values.reduce((sum, each) => sum + each, 0) / values.length;
  const squares = values.reduce((sum, each) => sum + (each - mean) ** 2, 0);
  return { mean, error: Math.sqrt(squares / Math.max(1, values.length - 1) / values.length) };
}

function modesOf({ kind }: RouterSet, only: string | undefined): RouterMode[] {
  const all = kind === "logged" ? MODES.slice(0, 1) : MODES;
  return all.filter((mode) => only === undefined || mode === only);
}

function install(): void {
  if (existsSync(PYTHON)) return;
  process.stderr.write(`installing ${LIBRARIES.join(", ")} into ${VENV}\n`);
  for (const [command, ...rest] of [
    ["python3", "-m", "venv", VENV],
    [PYTHON, "-m", "pip", "install", "--quiet", ...LIBRARIES],
  ]) {
    const { status, stderr } = spawnSync(command!, rest, { encoding: "utf8" });
    if (status !== 0)
      throw new RollbookError(
        "python-failed",
        { command },
        `${command} ${rest.join(" ")} failed:\n${stderr}`,
      );
  }
}

function unknownName(kind: string, name: string, known: readonly string[]): RollbookError {
  return new RollbookError(
    "unknown-name",
    { name },
    `no ${kind} is called ${name}. Known: ${known.join(", ")}.`,
  );
}
