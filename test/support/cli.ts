/** The command line in this process: words in, exit code and both streams out. Every instance has its own directory
 *  with its book and its keys. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { type Clock, manualClock } from "../../src/base/clock.ts";
import { run } from "../../src/cli/run.ts";

export interface Outcome {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

export class Cli {
  readonly folder = mkdtempSync(join(tmpdir(), "rollbook-cli-"));
  readonly book = join(this.folder, "book");
  readonly home = join(this.folder, "home");

  /** True if commands treat stdout as a terminal. */
  readonly terminal: boolean;

  /** The clock of the commands. */
  readonly clock: Clock;

  /** `whenDone` gets the function that removes the folder. By default it runs at the end of the test. A file that
   *  shares the instance passes its own. */
  constructor({
    clock = manualClock(1000),
    terminal = false,
    whenDone = onTestFinished,
  }: { clock?: Clock; terminal?: boolean; whenDone?: (remove: () => void) => void } = {}) {
    this.clock = clock;
    this.terminal = terminal;
    whenDone(() => rmSync(this.folder, { recursive: true, force: true }));
  }

  async run(
    words: string | readonly string[],
    stdin: string | Uint8Array = "",
    env: Readonly<Record<string, string>> = {},
  ): Promise<Outcome> {
    const outcome = { out: "", err: "" };
    const code = await run(typeof words === "string" ? words.split(" ") : words, {
      stdin: (async function* () {
        yield Buffer.from(stdin as string);
      })(),
      out: (data) => {
        outcome.out += typeof data === "string" ? data : Buffer.from(data).toString();
      },
      err: (text) => {
        outcome.err += text;
      },
      live: false,
      terminal: this.terminal,
      env: { ROLLBOOK_BOOK: this.book, ROLLBOOK_HOME: this.home, ...env },
      home: this.folder,
      clock: this.clock,
    });
    return { code, ...outcome };
  }

  /** Runs a command that must succeed, and returns its stdout. */
  async ok(words: string | readonly string[], stdin: string | Uint8Array = ""): Promise<string> {
    const { code, out, err } = await this.run(words, stdin);
    if (code !== 0) throw new Error(`exit ${code} from ${String(words)}: ${err}`);
    return out;
  }

  // biome-ignore lint/suspicious/noExplicitAny: tests look into output of every shape
  async json(words: string, stdin: string | Uint8Array = ""): Promise<any[]> {
    const text = await this.ok(`${words} --json`, stdin);
    return text
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line));
  }

  file(name: string, content: string | Uint8Array): string {
    const path = join(this.folder, name);
    writeFileSync(path, content);
    return path;
  }
}

/** JSON Lines. */
export function lines(...values: readonly unknown[]): string {
  return values.map((value) => `${JSON.stringify(value)}\n`).join("");
}
