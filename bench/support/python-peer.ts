/** A Python program that answers JSON lines with JSON lines. It stays running, so that its start is not timed. */
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { RollbookError } from "../../src/base/errors.ts";

export class PythonPeer {
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #lines: AsyncIterator<string>;
  #complaints = "";

  constructor(python: string, program: string) {
    this.#child = spawn(python, [program]);
    this.#lines = createInterface({ input: this.#child.stdout })[Symbol.asyncIterator]();
    this.#child.stderr.on("data", (text) => {
      this.#complaints += text;
    });
  }

  async call<T>(name: string, ...args: unknown[]): Promise<T> {
    this.#child.stdin.write(`${JSON.stringify([name, ...args])}\n`);
    const { value, done } = await this.#lines.next();
    if (!done) return JSON.parse(value) as T;
    throw new RollbookError("python-failed", { name }, `Python's ${name} failed:\n${this.#complaints}`);
  }

  close(): void {
    this.#child.stdin.end();
  }
}
