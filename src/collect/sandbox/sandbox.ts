/** The sandbox interface: run one untrusted program over given files, under limits, and report exactly how it ended.
 *  In: program, files, limits. Out: ExecResult. A crash, a timeout or a refusal by the kernel is data;
 *  only a failure of the sandbox itself throws. Does not choose or start an engine (open.ts does). */
import { RollbookError } from "../../base/index.ts";

/** Maps a relative path to its content. Every file is readable under /task, the working directory, and is read-only. */
export type Files = Readonly<Record<string, string | Uint8Array>>;

export type ProgramKind = "command" | "python" | "javascript";

export type Program = ProgramIo &
  (
    | { readonly kind: "command"; readonly argv: readonly string[] }
    | { readonly kind: "python" | "javascript"; readonly entry: string; readonly args?: readonly string[] }
  );

export interface ProgramIo {
  readonly stdin?: string | Uint8Array;
  /** Added to the clean environment. No variable of the host is ever passed on. */
  readonly env?: Readonly<Record<string, string>>;
  /** Paths to return after the program has ended, relative to /tmp, the only writable folder. */
  readonly outputs?: readonly string[];
}

export interface Limits {
  readonly timeoutMs: number;
  readonly memoryBytes: number;
  /** Limit of processes and threads together. */
  readonly pids: number;
  readonly cpus: number;
  /** Size of /tmp. Its content also counts as memory. */
  readonly scratchBytes: number;
  /** Bytes kept of stdout and of stderr, each. The rest is discarded and flagged. */
  readonly outputBytes: number;
  /** Bytes kept of all output files together. Files that do not fit are left out. */
  readonly filesBytes: number;
}

export interface ExecResult {
  /** Null if a signal ended the program. As in a shell, a status of 128 + n means signal n. */
  readonly exitCode: number | null;
  readonly signal: string | null;
  readonly stdout: Uint8Array;
  readonly stderr: Uint8Array;
  readonly truncated: { readonly stdout: boolean; readonly stderr: boolean };
  readonly timedOut: boolean;
  /** The memory limit ended at least one process. */
  readonly outOfMemory: boolean;
  /** The process limit refused at least one process or thread. */
  readonly pidsExceeded: boolean;
  /** Ended for flooding: the program wrote FLOOD_FACTOR times the output limit. */
  readonly outputExceeded: boolean;
  /** The outputs that existed as regular files. */
  readonly files: Readonly<Record<string, Uint8Array>>;
  readonly usage: ExecUsage;
}

interface ExecUsage {
  readonly wallMs: number;
  /** Null if the engine cannot measure it. */
  readonly cpuMs: number | null;
  readonly peakMemoryBytes: number | null;
}

export type EngineName = "bubblewrap" | "docker" | "quickjs";

/** A threat that an engine claims to cover. The attack suite checks every claim. */
export type Threat =
  | "write-outside"
  | "host-files"
  | "network"
  | "environment"
  | "memory"
  | "processes"
  | "time"
  | "output"
  | "scratch"
  | "signals"
  | "privilege"
  | "leftovers";

export interface Sandbox {
  readonly engine: EngineName;
  readonly runs: ReadonlySet<ProgramKind>;
  readonly covers: ReadonlySet<Threat>;
  exec(program: Program, files?: Files, limits?: Partial<Limits>): Promise<ExecResult>;
  /** Ends running programs and removes every trace. Safe to call twice. */
  close(): Promise<void>;
}

/** One method of isolation. The pool opens as many slots as it has workers. */
export interface SandboxEngine {
  readonly name: EngineName;
  readonly runs: ReadonlySet<ProgramKind>;
  readonly covers: ReadonlySet<Threat>;
  openSlot(): Promise<Slot>;
  close(): Promise<void>;
}

/** Runs one task at a time. A slot that has thrown is closed and never used again. */
export interface Slot {
  exec(task: SandboxTask): Promise<ExecResult>;
  close(): Promise<void>;
}

/** A checked request: paths are safe, limits are complete, contents are bytes. */
export interface SandboxTask {
  readonly program: Program;
  readonly stdin: Uint8Array;
  readonly files: ReadonlyMap<string, Uint8Array>;
  readonly limits: Limits;
}

const MIB = 1024 * 1024;

const DEFAULT_LIMITS: Limits = Object.freeze({
  timeoutMs: 10_000,
  memoryBytes: 256 * MIB,
  pids: 64,
  cpus: 1,
  scratchBytes: 64 * MIB,
  outputBytes: MIB,
  filesBytes: 16 * MIB,
});

/** A program is ended after it writes this many times its output limit: reading more would only load the host. */
export const FLOOD_FACTOR = 16;

/** The environment of a task, before the program's own additions. */
export const CLEAN_ENV: Readonly<Record<string, string>> = Object.freeze({
  PATH: "/usr/local/bin:/usr/bin:/bin",
  HOME: "/tmp",
  TMPDIR: "/tmp",
  LANG: "C.UTF-8",
});

export function checkTask(program: Program, files: Files, limits: Partial<Limits>): SandboxTask {
  if (program.kind === "command") {
    if (program.argv.length === 0) throw badTask("argv", "is empty");
    for (const arg of program.argv) refuseNul("argv", arg);
  } else {
    checkPath("entry", program.entry);
    if (!Object.hasOwn(files, program.entry))
      throw badTask("entry", `${program.entry} is not among the files`);
    if (program.kind === "javascript" && !program.entry.endsWith(".mjs"))
      throw badTask("entry", `${program.entry} does not end in .mjs (programs are ES modules)`);
    for (const arg of program.args ?? []) refuseNul("args", arg);
  }
  for (const [key, value] of Object.entries(program.env ?? {})) {
    if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(key)) throw badTask("env", `${JSON.stringify(key)} is not a name`);
    refuseNul("env", value);
  }
  for (const path of program.outputs ?? []) checkPath("outputs", path);
  return {
    program,
    stdin: bytesOfText(program.stdin ?? ""),
    files: checkFiles(files),
    limits: checkLimits({ ...DEFAULT_LIMITS, ...limits }),
  };
}

/** Replaces invalid bytes by design: for messages, and for programs that are known to print text. */
export function textOf(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes);
}

function bytesOfText(content: string | Uint8Array): Uint8Array {
  return typeof content === "string" ? Buffer.from(content) : content;
}

function checkFiles(files: Files): Map<string, Uint8Array> {
  const checked = new Map<string, Uint8Array>();
  for (const [path, content] of Object.entries(files)) {
    checkPath("files", path);
    checked.set(path, bytesOfText(content));
  }
  for (const path of checked.keys()) {
    for (let at = path.indexOf("/"); at > 0; at = path.indexOf("/", at + 1))
      if (checked.has(path.slice(0, at)))
        throw badTask("files", `${path.slice(0, at)} is a file and a folder`);
  }
  return checked;
}

function checkPath(field: string, path: string): void {
  refuseNul(field, path);
  const parts = path.split("/");
  const bad = parts.some(
    (part) => part === "" || part === "." || part === ".." || Buffer.byteLength(part) > 255,
  );
  if (bad || path.length > 1024)
    throw badTask(field, `${JSON.stringify(path.slice(0, 200))} is not a plain relative path`);
}

function checkLimits(limits: Limits): Limits {
  const least: Limits = {
    timeoutMs: 1,
    memoryBytes: 16 * MIB,
    pids: 1,
    cpus: 0.01,
    scratchBytes: 4096,
    outputBytes: 0,
    filesBytes: 0,
  };
  for (const key of Object.keys(least) as (keyof Limits)[]) {
    const value = limits[key];
    const whole = key === "cpus" ? Number.isFinite(value) : Number.isSafeInteger(value);
    if (!whole || value < least[key]) throw badTask(key, `is ${value}; the least is ${least[key]}`);
  }
  if (limits.timeoutMs > 2 ** 31 - 1) throw badTask("timeoutMs", "is longer than a timer can wait");
  return limits;
}

function refuseNul(field: string, text: string): void {
  if (text.includes("\0")) throw badTask(field, "holds a NUL character");
  if (!text.isWellFormed()) throw badTask(field, "holds a lone surrogate");
}

function badTask(field: string, what: string): RollbookError {
  return new RollbookError("bad-sandbox-task", { field }, `${field} ${what}. Correct the task.`);
}
