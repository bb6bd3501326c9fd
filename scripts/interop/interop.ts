/** Tests the output of `data convert` with real readers. Exports a small book to every format, installs the reader's
 *  library into .cache/interop-NAME (pinned, once), and lets the library read, check and train.
 *  In: a name. Out: lines of JSON, each a claim that held. Exit 1 if a claim failed.
 *  Needs python3 with venv, and gcc for torch. */
import { spawnSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { manualClock } from "../../src/base/clock.ts";
import {
  convertRollouts,
  cutBatch,
  exportBatch,
  importRollouts,
  initBook,
  useBook,
} from "../../src/book/index.ts";
import { TRAINER_FORMATS } from "../../src/convert/formats/index.ts";
import { handedRecords } from "../../test/support/handover-world.ts";
import { READERS, type ReaderSetup, TORCH, TORCH_NEEDS, TRAINER } from "./readers.ts";

const CACHE = fileURLToPath(new URL("../../.cache/", import.meta.url));
const HERE = fileURLToPath(new URL(".", import.meta.url));
const INSTALL_LIMIT_MS = 15 * 60_000;
const READ_LIMIT_MS = 15 * 60_000;

const [name, part] = process.argv.slice(2);
if (name === "torch") process.exit(trainTokens(part));
const setup = READERS[name ?? ""];
if (name === undefined || setup === undefined) {
  process.stderr.write(`usage: npm run interop -- torch [base|cost]|${Object.keys(READERS).join("|")}\n`);
  process.exit(2);
}
const python = installed(name, setup);
const folder = mkdtempSync(join(tmpdir(), "rollbook-interop-"));
try {
  await exportAll(folder);
  const program = join(HERE, `read_${name}.py`);
  const env = {
    ...process.env,
    HF_HUB_OFFLINE: "1",
    TOKENIZERS_PARALLELISM: "false",
    CUDA_VISIBLE_DEVICES: "",
    PYTHONPATH: resolve(HERE, "../../examples"),
  };
  const { status } = spawnSync(python, ["-W", "ignore", program, folder], {
    stdio: "inherit",
    timeout: READ_LIMIT_MS,
    env,
  });
  process.exitCode = status ?? 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}

/** Two windows of docs/topics/climb.md with a model of 0.5 M parameters, on the CPU. `part`: only the base model, or only the
 *  windows of an existing base model (default: both). */
function trainTokens(part?: string): number {
  const root = resolve(HERE, "../..");
  const work = join(CACHE, "interop-climb");
  const program = installed("train", TRAINER);
  if (part !== "cost") rmSync(work, { recursive: true, force: true });
  const options = [
    ...[
      "--device",
      "cpu",
      "--threads",
      "1",
      "--python",
      program,
      "--work",
      join(work, "work"),
      "--out",
      work,
    ],
    ...["--seeds", "1", "--hidden", "96", "--layers", "5", "--limit", "19", "--until", "0.3"],
    ...["--sft-rate", "2e-3", "--sft-batch", "128", "--cost-windows", "2", "--rollouts", "128"],
    ...["--workers", "64", "--held-out", "40", "--every", "2"],
  ];
  const { status } = spawnSync(
    process.execPath,
    [
      join(root, "bench", "climb", "run.mjs"),
      ...(part === undefined ? ["base", "cost"] : [part]),
      ...options,
    ],
    { stdio: "inherit", timeout: READ_LIMIT_MS, env: fromSources(root) },
  );
  return status ?? 1;
}

/** The climb imports modules of the loop that the bundled build does not have, so it runs the sources. */
function fromSources(root: string): NodeJS.ProcessEnv {
  const options = [process.env.NODE_OPTIONS, `--import=${import.meta.resolve("tsx")}`];
  return {
    ...process.env,
    ROLLBOOK_DIST: join(root, "src"),
    NODE_OPTIONS: options.filter(Boolean).join(" "),
  };
}

/** One file for each format from a batch with a failed rollout, and the batch itself as arrays. */
async function exportAll(out: string): Promise<void> {
  const root = join(out, "book");
  await initBook(root);
  await useBook(root, { mode: "write", clock: manualClock(1000) }, async (book) => {
    for (const record of handedRecords({ questions: 4, size: 4 }))
      await importRollouts(book, record as never);
    const { digest } = await cutBatch(book, { target: "policy-r2", level: "token" });
    for (const to of TRAINER_FORMATS)
      await convertRollouts(book, {
        ...{ to, batch: digest, out: join(out, to) },
        ...(to === "trl-kto" ? { threshold: 0.5 } : {}),
      });
    for (const format of ["npz", "safetensors", "parquet"] as const)
      await exportBatch(book, digest, { format, out: join(out, `batch.${format}`) });
  });
}

/** The Python of the environment; created on the first run. */
function installed(
  reader: string,
  { packages, alone = [], torch, python: base = "python3" }: ReaderSetup,
): string {
  const shared =
    torch === true ? installed("torch", { packages: [...TORCH_NEEDS], alone: TORCH }) : undefined;
  const home = join(CACHE, `interop-${reader}`);
  const program = join(home, "bin", "python");
  const mark = join(home, "pins.json");
  const pins = JSON.stringify({ packages, alone, torch: torch === true });
  if (existsSync(mark) && readFileSync(mark, "utf8") === pins) return program;
  mkdirSync(CACHE, { recursive: true });
  process.stderr.write(`installing ${[...packages, ...alone].join(" ")} into .cache/interop-${reader}\n`);
  run(base, ["-m", "venv", "--clear", home]);
  const site = siteOf(home);
  // torch is large, so environments share one copy.
  if (shared !== undefined)
    writeFileSync(join(site, "shared-torch.pth"), `${siteOf(join(CACHE, "interop-torch"))}\n`);
  const pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
  if (packages.length > 0) run(program, [...pip, ...packages]);
  if (alone.length > 0) run(program, [...pip, "--no-deps", "--ignore-requires-python", ...alone]);
  if (reader === "torch") run(program, [join(HERE, "stub_cuda.py"), site]);
  writeFileSync(mark, pins);
  return program;
}

function siteOf(home: string): string {
  const lib = join(home, "lib");
  return join(lib, readdirSync(lib).find((each) => each.startsWith("python"))!, "site-packages");
}

function run(program: string, args: readonly string[]): void {
  const { status, error } = spawnSync(program, args, { stdio: ["ignore", 2, 2], timeout: INSTALL_LIMIT_MS });
  if (status === 0) return;
  process.stderr.write(`${program} ${args.join(" ")} failed${error ? `: ${error.message}` : ""}\n`);
  process.exit(1);
}
