/** Trials of a figure that takes hours, one line each, so that it can be measured in pieces. A run reuses the trials in
 *  the file and stops when its time is up.
 *  A trial is a function of its number, so pieces give the same result as one run. */
import { appendFileSync, existsSync, readFileSync } from "node:fs";
import type { Json } from "../../src/base/canonical-json.ts";

interface TrialLine {
  readonly figure: string;
  readonly trial: number;
  readonly value: Json;
}

export class TrialFile {
  readonly #path: string | undefined;
  readonly #endMs: number;
  readonly #known = new Map<string, Json>();

  constructor({ path, seconds }: { path: string | undefined; seconds: number }) {
    this.#path = path;
    this.#endMs = performance.now() + 1000 * seconds;
    if (path === undefined || !existsSync(path)) return;
    for (const line of readFileSync(path, "utf8").split("\n").slice(0, -1)) {
      const { figure, trial, value } = JSON.parse(line) as TrialLine;
      this.#known.set(`${figure} ${trial}`, value);
    }
  }

  /** Trials 0 … count − 1; undefined if the time is up before the last trial. */
  all<T extends Json>(figure: string, count: number, make: (trial: number) => T): T[] | undefined {
    const values: T[] = [];
    for (let trial = 0; trial < count; trial++) {
      const known = this.#known.get(`${figure} ${trial}`);
      if (known === undefined && performance.now() > this.#endMs) return undefined;
      const value = (known ?? make(trial)) as T;
      if (known === undefined && this.#path !== undefined)
        appendFileSync(this.#path, `${JSON.stringify({ figure, trial, value } satisfies TrialLine)}\n`);
      values.push(value);
    }
    return values;
  }
}
