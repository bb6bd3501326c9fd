/** Open Bandit Pipeline as a peer process: installed from PyPI into .cache/obp, asked over a pipe. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { bytesOf, type Column } from "../../src/base/arrays.ts";
import { RollbookError } from "../../src/base/errors.ts";

const VENV = fileURLToPath(new URL("../../.cache/obp", import.meta.url));
const PYTHON = join(VENV, "bin", "python");
const SERVER = fileURLToPath(new URL("./obp_server.py", import.meta.url));
const PEER = "obp==0.5.7";
/** obp pins torch 1.12 and Python below 3.11, which are no longer available. So it is installed without its pins, on
 *  current numpy and scikit-learn, which is to its advantage. */
const LIBRARIES = [
  "numpy==2.4.6",
  "scipy==1.17.1",
  "scikit-learn==1.9.1",
  "pandas==3.1.1",
  "tqdm",
  "PyYAML",
  "matplotlib",
  "seaborn",
];

export interface PeerInput {
  readonly columns: Readonly<Record<"reward" | "behaviour" | "chosen" | "target" | "predictions", Column>>;
  readonly rows: number;
  readonly actions: number;
  readonly switch: number;
  readonly shrinkage: number;
}

export interface PeerReply {
  readonly seconds: number;
  readonly points: Readonly<Record<string, number>>;
}

export class OpenBanditPipeline {
  readonly version: string;
  readonly #child: ChildProcess;
  readonly #lines: AsyncIterator<string>;
  readonly #folder: string;

  private constructor(child: ChildProcess, lines: AsyncIterator<string>, folder: string, version: string) {
    this.#child = child;
    this.#lines = lines;
    this.#folder = folder;
    this.version = version;
  }

  static async start({ columns, ...settings }: PeerInput): Promise<OpenBanditPipeline> {
    install();
    const folder = await mkdtemp(join(tmpdir(), "rollbook-obp-"));
    for (const [name, column] of Object.entries(columns))
      await writeFile(join(folder, name), bytesOf(column));
    await writeFile(join(folder, "settings.json"), JSON.stringify(settings));
    const child = spawn(PYTHON, ["-W", "ignore", SERVER, folder], { stdio: ["pipe", "pipe", "inherit"] });
    const lines = createInterface({ input: child.stdout! })[Symbol.asyncIterator]();
    const hello = JSON.parse(await nextLine(lines));
    return new OpenBanditPipeline(child, lines, folder, `obp ${hello.version}, numpy ${hello.numpy}`);
  }

  async estimate(estimators: readonly string[], replicates: number): Promise<PeerReply> {
    this.#child.stdin!.write(`${JSON.stringify({ estimators, replicates })}\n`);
    return JSON.parse(await nextLine(this.#lines));
  }

  async stop(): Promise<void> {
    const ended = once(this.#child, "exit");
    this.#child.stdin!.end();
    await ended;
    await rm(this.#folder, { recursive: true });
  }
}

async function nextLine(lines: AsyncIterator<string>): Promise<string> {
  const { value, done } = await lines.next();
  if (done !== true) return value;
  throw new RollbookError("peer-ended", {}, "Open Bandit Pipeline ended early; its message stands above.");
}

function install(): void {
  if (
    existsSync(PYTHON) &&
    spawnSync(PYTHON, ["-m", "pip", "show", "--quiet", "obp", "scikit-learn"]).status === 0
  )
    return;
  process.stderr.write(`installing ${PEER} into ${VENV}\n`);
  runOrThrow("python3", ["-m", "venv", "--clear", VENV]);
  runOrThrow(PYTHON, ["-m", "pip", "install", "--quiet", "--no-deps", "--ignore-requires-python", PEER]);
  // pip warns about conflicts with obp's old pins, but installs the libraries.
  runOrThrow(PYTHON, ["-m", "pip", "install", "--quiet", ...LIBRARIES]);
}

function runOrThrow(program: string, args: string[]): void {
  const { status } = spawnSync(program, args, { stdio: ["ignore", "inherit", "inherit"] });
  if (status === 0) return;
  throw new RollbookError(
    "peer-absent",
    { program, args },
    `${program} ${args.join(" ")} failed. The comparison needs Python 3 with venv, and PyPI within reach.`,
  );
}
