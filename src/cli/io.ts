/** What a command may touch of its process: streams, environment, clock. Tests hand in their own. */
import { homedir } from "node:os";
import { type Clock, systemClock } from "../base/index.ts";

export interface Io {
  readonly stdin: AsyncIterable<Uint8Array>;
  /** Data. */
  out(text: string): void;
  /** Prose and progress. */
  err(text: string): void;
  /** True if somebody watches stderr: only then is progress drawn. */
  readonly live: boolean;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly home: string;
  readonly clock: Clock;
}

export function processIo(): Io {
  return {
    stdin: process.stdin,
    out: writerTo(process.stdout),
    err: writerTo(process.stderr),
    live: process.stderr.isTTY === true,
    env: process.env,
    home: homedir(),
    clock: systemClock,
  };
}

/** A reader that goes away (`| head`) ends the output, not the work: the exit code still tells how that went. */
function writerTo(stream: NodeJS.WriteStream): (text: string) => void {
  let state: "new" | "open" | "gone" = "new";
  return (text) => {
    if (state === "new") {
      state = "open";
      stream.on("error", (error: NodeJS.ErrnoException) => {
        if (error.code !== "EPIPE") throw error;
        state = "gone";
      });
    }
    if (state === "open") stream.write(text);
  };
}
