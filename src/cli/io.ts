/** What a command may touch of its process: streams, environment, clock. Tests hand in their own. */
import { homedir } from "node:os";
import { type Clock, systemClock } from "../base/index.ts";

export interface Io {
  readonly stdin: AsyncIterable<Uint8Array>;
  /** Data: text, or bytes as they are. */
  out(data: string | Uint8Array): void;
  /** Prose and progress. */
  err(text: string): void;
  /** True if somebody watches stderr: only then is progress drawn. */
  readonly live: boolean;
  /** True if stdout is a terminal: data is laid out for people. */
  readonly terminal: boolean;
  /** Width of that terminal, where it is known. */
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

/** A reader that goes away (`| head`) ends the output, not the work: the exit code still tells how that went. */
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
