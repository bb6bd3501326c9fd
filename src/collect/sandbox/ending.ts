/** Reads how a program ended and what it left, alike for every engine that runs real processes. Pure. */
import { constants } from "node:os";
import type { OutputBuffer } from "./output.ts";
import { type ExecResult, textOf } from "./sandbox.ts";

const SIGNALS = new Map(Object.entries(constants.signals).map(([name, number]) => [number, name]));

/** A shell, bwrap and Docker all report death by signal n as 128 + n. */
export function endOf(status: number): Pick<ExecResult, "exitCode" | "signal"> {
  const signal = status > 128 ? SIGNALS.get(status - 128) : undefined;
  return signal === undefined ? { exitCode: status, signal: null } : { exitCode: null, signal };
}

/** One line per wanted output, in order: "=" and base64 for a file, nothing for one that is not there.
 *  What comes from inside is untrusted: lines that are missing or garbled are files that are missing. */
export function decodeOutputs(
  outputs: readonly string[],
  sent: OutputBuffer,
  filesBytes: number,
): Record<string, Uint8Array> {
  const lines = textOf(sent.bytes()).split("\n");
  const files: [string, Uint8Array][] = [];
  let room = filesBytes;
  outputs.forEach((path, i) => {
    const line = lines[i];
    if (line === undefined || !/^=[A-Za-z0-9+/]*={0,2}$/.test(line) || i + 1 >= lines.length) return;
    const content = new Uint8Array(Buffer.from(line.slice(1), "base64"));
    if (content.byteLength > room) return;
    room -= content.byteLength;
    files.push([path, content]);
  });
  return Object.fromEntries(files);
}
