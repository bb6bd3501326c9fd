/** Defines the parts of its process that a command may use: streams, environment, clock. Tests pass their own. */
import { homedir } from "node:os";
import { type Clock, systemClock } from "../base/index.ts";

export interface Io {
  readonly stdin: AsyncIterable<Uint8Array>;
  /** Writes data: text, or raw bytes. */
  out(data: string | Uint8Array): void;
  /** Writes prose and progress. */
  err(text: string): void;
  /** True if stderr is a terminal: only then is progress drawn. */
  readonly live: boolean;
  /** True if stdout is a terminal: data is laid out for people. */
  readonly terminal: boolean;
  /** Width of that terminal, if known. */
  readonly columns?: number | undefined;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly home: string;
  readonly clock: Clock;
}

/** NO_COLOR (https://no-color.org) and dumb terminals turn colours off. */
export function hasColor({ terminal, env }: Pick<Io, "terminal" | "env">): boolean {
  return terminal && !env.NO_COLOR && env.TERM !== "dumb";
}

export function processIo(): Io {
  return {
    stdin: process.stdin,
    out: writerTo(process.stdout),
    err: writerTo(process.stderr),
    live: process.stderr.isTTY === true,
    terminal: process.stdout.isTTY === true,
    columns: process.stdout.isTTY === true ? process.stdout.columns : undefined,
    env: process.env,
    home: homedir(),
    clock: systemClock,
  };
}

/** A reader that closes the pipe (`| head`) ends the output, not the work: the exit code still gives the result. */
function writerTo(stream: NodeJS.WriteStream): (data: string | Uint8Array) => void {
  let state: "new" | "open" | "gone" = "new";
  return (data) => {
    if (state === "new") {
      state = "open";
      stream.on("error", (error: NodeJS.ErrnoException) => {
        if (error.code !== "EPIPE") throw error;
        state = "gone";
      });
    }
    if (state === "open") stream.write(data);
  };
}
