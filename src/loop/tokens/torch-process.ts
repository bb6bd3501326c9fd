/** Runs Python processes of rollbook_torch.
 *  In: an interpreter and a device. Out: processes that end with this one, because they read their standard input.
 *  Their stderr goes to the log. */
import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { delimiter } from "node:path";
import { createInterface, type Interface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { fileURLToPath } from "node:url";
import { parseJson, RollbookError } from "../../base/index.ts";

export interface TorchPlace {
  /** Path of a Python with torch, transformers and safetensors. */
  readonly python: string;
  readonly device: string;
  readonly threads?: number | undefined;
  readonly log: (line: string) => void;
  /** Options that name the run in the command of an error. */
  readonly options: string;
}

/** Package in this checkout or in the installed package; if it is missing, Python must have it installed. */
const PACKAGE = fileURLToPath(new URL("../../../python/rollbook_torch", import.meta.url));
/** Number of stderr lines that are reported when the process dies. */
const LAST_LINES = 12;

export class TorchProcess {
  readonly #child: ChildProcessByStdio<Writable, Readable, Readable>;
  readonly #lines: AsyncIterator<string>;
  readonly #last: string[] = [];
  readonly #what: string;
  readonly #options: string;
  /** Aborts when the process has ended, for any reason. */
  readonly ended: AbortSignal;

  constructor(
    what: "serve" | "train",
    { python, device, threads, log, options }: TorchPlace,
    args: readonly string[] = [],
  ) {
    this.#what = what === "serve" ? "the model server" : "the trainer";
    this.#options = options;
    const path = [existsSync(PACKAGE) ? PACKAGE : "", process.env.PYTHONPATH ?? ""].filter(
      (each) => each !== "",
    );
    this.#child = spawn(
      python,
      [
        ...["-m", "rollbook_torch", what, "--device", device, ...args],
        ...(threads === undefined ? [] : ["--threads", String(threads)]),
      ],
      {
        stdio: ["pipe", "pipe", "pipe"],
        env: { ...process.env, PYTHONPATH: path.join(delimiter), PYTHONUNBUFFERED: "1" },
      },
    );
    const over = new AbortController();
    this.ended = over.signal;
    this.#child.on("exit", () => over.abort());
    this.#child.on("error", (error) => {
      this.#last.push(String(error));
      over.abort();
    });
    this.#child.stdin.on("error", () => {}); // the exit reports it
    const read: Interface = createInterface({ input: this.#child.stderr });
    read.on("line", (line) => {
      this.#last.push(line);
      if (this.#last.length > LAST_LINES) this.#last.shift();
      log(`${what}: ${line}`);
    });
    this.#lines = createInterface({ input: this.#child.stdout })[Symbol.asyncIterator]();
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  /** Reads the next line of the output. */
  async read(): Promise<unknown> {
    const { value, done } = await this.#lines.next();
    if (done === true) {
      // The output ends before the exit is reported.
      if (!this.ended.aborted) await once(this.ended, "abort");
      throw this.death();
    }
    return parseJson(value, this.#what);
  }

  async ask(request: object): Promise<unknown> {
    if (this.ended.aborted) throw this.death();
    this.#child.stdin.write(`${JSON.stringify(request)}\n`);
    return this.read();
  }

  death(): RollbookError {
    const said = this.#last.length === 0 ? "" : ` Its last lines: ${this.#last.join(" | ").slice(-1500)}`;
    return new RollbookError(
      "torch-died",
      { what: this.#what, pid: this.pid, code: this.#child.exitCode, signal: this.#child.signalCode },
      `${this.#what} has ended (${this.#child.signalCode ?? `exit ${this.#child.exitCode}`}).${said} Continue with \`rollbook run resume ${this.#options}\`.`,
    );
  }

  async close(): Promise<void> {
    this.#child.stdin.end();
    if (this.ended.aborted) return;
    const timer = setTimeout(() => this.#child.kill("SIGKILL"), 5_000);
    await once(this.#child, "exit");
    clearTimeout(timer);
  }
}
