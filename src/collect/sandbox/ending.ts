/** Start and end of programs, shared by every engine that runs real processes: the command line, the verdict, the
 *  output files. In: a program, and the engine's observations of its run. Out: argv, ExecResult. Pure. */
import { constants } from "node:os";
import type { Counters } from "./cgroup/index.ts";
import type { OutputBuffer } from "./output.ts";
import { type ExecResult, type Program, type Threat, textOf } from "./sandbox.ts";

const SIGNALS = new Map(Object.entries(constants.signals).map(([name, number]) => [number, name]));

/** Threats that engines with real processes protect against. */
export const PROCESS_THREATS: ReadonlySet<Threat> = new Set([
  ...(["write-outside", "host-files", "network", "environment", "memory", "processes"] as const),
  ...(["time", "output", "scratch", "signals", "privilege", "leftovers"] as const),
]);

/** `node` and `python` are the paths of the interpreters inside the sandbox. */
export function programArgv(program: Program, { node, python }: { node: string; python: string }) {
  switch (program.kind) {
    case "command":
      return program.argv;
    case "python":
      return [python, "-B", program.entry, ...(program.args ?? [])];
    case "javascript":
      return [node, program.entry, ...(program.args ?? [])];
    default:
      return program satisfies never;
  }
}

export interface EndedRun {
  /** Reason if the engine ended the program. */
  readonly ended: "timeout" | "flood" | undefined;
  readonly wallMs: number;
  readonly stdout: OutputBuffer;
  readonly stderr: OutputBuffer;
}

export function resultOf(seen: {
  readonly run: EndedRun;
  /** Undefined: the program was killed. */
  readonly status: number | undefined;
  readonly outOfMemory: boolean;
  /** Counters of its control group. Undefined if the group no longer exists. */
  readonly before: Counters | undefined;
  readonly after: Counters | undefined;
  readonly peakMemoryBytes: number | null;
  readonly files: ExecResult["files"];
}): ExecResult {
  const { run, status, outOfMemory, before, after, peakMemoryBytes, files } = seen;
  const [cpuBefore, cpuAfter] = [before?.cpuMs ?? null, after?.cpuMs ?? null];
  const cpuMs = cpuBefore === null || cpuAfter === null ? null : cpuAfter - cpuBefore;
  return {
    ...(run.ended !== undefined || status === undefined
      ? { exitCode: null, signal: "SIGKILL" }
      : endOf(status)),
    stdout: run.stdout.bytes(),
    stderr: run.stderr.bytes(),
    truncated: { stdout: run.stdout.truncated, stderr: run.stderr.truncated },
    timedOut: run.ended === "timeout",
    outOfMemory,
    pidsExceeded: before !== undefined && after !== undefined && after.pidsRefused > before.pidsRefused,
    outputExceeded: run.ended === "flood",
    files,
    usage: { wallMs: run.wallMs, cpuMs, peakMemoryBytes },
  };
}

/** A shell, bwrap and Docker all report death by signal n as 128 + n. */
export function endOf(status: number): Pick<ExecResult, "exitCode" | "signal"> {
  const signal = status > 128 ? SIGNALS.get(status - 128) : undefined;
  return signal === undefined ? { exitCode: status, signal: null } : { exitCode: null, signal };
}

/** Parses one line per requested output, in order: "=" and base64 for a file, an empty line for a missing file.
 *  Data from inside is untrusted: a missing or invalid line counts as a missing file. */
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
