/** Importing decision logs with `rollbook data import`: rows per second and peak memory over growing files, one process
 *  each. Bounded means that the peak does not follow the rows. */
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { createWriteStream } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { RollbookError } from "../../src/base/errors.ts";
import { type Rng, rngFrom } from "../../src/base/rng.ts";
import { MAIN, requireBuild } from "../support/build.ts";

const DIST = `${dirname(MAIN)}/`;
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

/** A million rows of either log into the book; the wider log into a dataset file too. */
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
    if (into === "book") runImport(["init", "--book", book]);
    const place = into === "book" ? ["--book", book] : ["--out", join(folder, "out.jsonl")];
    const { seconds, cpuSeconds, peakMiB, out } = runImport([
      "data",
      "import",
      file,
      ...log.words,
      ...place,
      "--no-sign",
      "--json",
    ]);
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

/** The command in a process of its own, which tells its time without start-up and its peak memory. */
const PROBE = `
const { run } = await import(process.argv[1] + "run.js");
const { processIo } = await import(process.argv[1] + "io.js");
const start = performance.now();
const code = await run(process.argv.slice(2), processIo());
const seconds = (performance.now() - start) / 1000;
const { user, system } = process.cpuUsage();
const peakMiB = process.resourceUsage().maxRSS / 1024;
process.stderr.write("\\n" + JSON.stringify({ seconds, cpuSeconds: (user + system) / 1e6, peakMiB }));
process.exitCode = code;
`;

interface Measured {
  readonly seconds: number;
  /** Start-up included: what the work costs, however loaded the machine is. */
  readonly cpuSeconds: number;
  readonly peakMiB: number;
  readonly out: string;
}

function runImport(words: readonly string[]): Measured {
  const args = ["--input-type=module", "--eval", PROBE, "--", DIST, ...words];
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: "utf8" });
  if (status !== 0)
    throw new RollbookError("bench-failed", { words, status }, `${words.join(" ")}: ${stderr}`);
  return { ...JSON.parse(stderr.slice(stderr.lastIndexOf("\n") + 1)), out: stdout };
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
