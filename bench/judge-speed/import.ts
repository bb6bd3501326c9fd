/** Imports decision logs with `rollbook data import`: rows per second and peak memory over growing files, one process
 *  each. Bounded means that the peak does not grow with the rows. */
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { createWriteStream, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { RollbookError } from "../../src/base/errors.ts";
import { type Rng, rngFrom } from "../../src/base/rng.ts";
import { MAIN, requireBuild } from "../support/build.ts";

const SIZES = [10_000, 100_000, 1_000_000];
const ITEMS = 34;

interface Log {
  readonly name: string;
  readonly words: readonly string[];
  readonly header: string;
  line(rng: Rng, row: number): string;
}

export const LOGS: readonly Log[] = [
  { name: "routing JSONL", words: ["--format", "routing"], header: "", line: routingLine },
  {
    name: "Open Bandit CSV",
    words: ["--format", "open-bandit", "--data-source", "synthetic"],
    header: `timestamp,item_id,position,click,propensity_score,user_feature_0,user_feature_1,${Array.from({ length: ITEMS }, (_, i) => `user-item_affinity_${i}`)}\n`,
    line: openBanditLine,
  },
];

/** A million rows of either log into the book; the wider log also into a dataset file. */
const RUNS = [
  { log: LOGS[0]!, into: "book", sizes: SIZES },
  { log: LOGS[0]!, into: "dataset", sizes: SIZES },
  { log: LOGS[1]!, into: "book", sizes: SIZES.slice(0, 2) },
  { log: LOGS[1]!, into: "dataset", sizes: SIZES },
] as const;

export async function importSpeed({ most = 1_000_000 } = {}): Promise<Record<string, string | number>[]> {
  requireBuild();
  const rows: Record<string, string | number>[] = [];
  for (const { log, into, sizes } of RUNS)
    for (const size of sizes.filter((each) => each <= most))
      rows.push(await measureImport({ log, into, size }));
  return rows;
}

export async function measureImport({
  log,
  into,
  size,
}: {
  log: Log;
  into: "book" | "dataset";
  size: number;
}) {
  const folder = await mkdtemp(join(tmpdir(), "rollbook-import-"));
  try {
    const file = join(folder, "log");
    await writeLog(file, log, size);
    const book = join(folder, "book");
    const usage = join(folder, "usage.json");
    if (into === "book") runImport(["init", "--book", book], usage);
    const place = into === "book" ? ["--book", book] : ["--out", join(folder, "out.jsonl")];
    const words = ["data", "import", file, ...log.words, ...place, "--no-sign", "--json"];
    const { seconds, cpuSeconds, peakMiB, out } = runImport(words, usage);
    const counted = (JSON.parse(out) as { rows: number }).rows;
    if (counted !== size)
      throw new RollbookError("bench-failed", { counted, size }, `${counted} of ${size} rows were imported`);
    return {
      import: log.name,
      into,
      rows: size,
      "rows/s": Math.round(size / seconds),
      "rows per CPU second": Math.round(size / cpuSeconds),
      "peak RSS, MiB": Math.round(peakMiB),
    };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

const USAGE = new URL("../support/usage.mjs", import.meta.url).href;

interface Measured {
  /** Includes start-up, as `cpuSeconds` does. */
  readonly seconds: number;
  /** Independent of the machine's load. */
  readonly cpuSeconds: number;
  readonly peakMiB: number;
  readonly out: string;
}

/** Runs the command of the build in its own process, which writes its usage to a file. */
function runImport(words: readonly string[], usage: string): Measured {
  const start = performance.now();
  const { status, stdout, stderr } = spawnSync(process.execPath, ["--import", USAGE, MAIN, ...words], {
    ...{ encoding: "utf8", env: { ...process.env, ROLLBOOK_USAGE: usage } },
  });
  const seconds = (performance.now() - start) / 1000;
  if (status !== 0)
    throw new RollbookError("bench-failed", { words, status }, `${words.join(" ")}: ${stderr}`);
  return { ...JSON.parse(readFileSync(usage, "utf8")), seconds, out: stdout };
}

async function writeLog(file: string, { header, line }: Log, size: number): Promise<void> {
  const out = createWriteStream(file);
  const rng = rngFrom(size);
  out.write(header);
  for (let row = 0; row < size; row++) if (!out.write(line(rng, row))) await once(out, "drain");
  out.end();
  await once(out, "finish");
}

function routingLine(rng: Rng, row: number): string {
  const large = rng.float() < 0.3;
  const candidates = ["small", "large"].map((id) => ({
    id,
    selectable: true,
    reasons: [],
    probability: id === "large" ? 0.3 : 0.7,
    features: { price: id === "large" ? 10 : 1 },
  }));
  return `${JSON.stringify({
    schema_version: 1,
    decision_id: `d-${row}`,
    session_id: `s-${row >> 4}`,
    task_id: `t-${row >> 4}`,
    agent_role: "router",
    timestamp: "2026-01-01T00:00:00Z",
    primary_model: "small",
    fallback_model: "large",
    model_chosen: large ? "large" : "small",
    propensity: large ? 0.3 : 0.7,
    reward: rng.below(2),
    terminal: true,
    data_source: "synthetic",
    state: {
      prompt: `What is ${rng.below(1000)} + ${rng.below(1000)}?`,
      fields: { length: rng.below(4000) },
      candidates,
    },
  })}\n`;
}

function openBanditLine(rng: Rng): string {
  const affinities = Array.from({ length: ITEMS }, () => rng.below(3));
  const users = `${rng.u32().toString(16)},${rng.below(10)}`;
  return `2019-11-24 00:00:00,${rng.below(ITEMS)},${1 + rng.below(3)},${rng.below(50) === 0 ? 1 : 0},${1 / ITEMS},${users},${affinities}\n`;
}
