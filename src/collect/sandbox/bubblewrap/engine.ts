/** The bubblewrap engine: one short-lived set of namespaces per task, one cgroup per slot.
 *  In: tasks. Out: results whose verdicts come from the kernel's own counters. Needs Linux, bwrap and writable cgroups,
 *  and throws at once if one of them is missing. Does not probe itself (probe.ts does). */
import { type ChildProcess, spawn } from "node:child_process";
import {
  accessSync,
  chownSync,
  closeSync,
  constants,
  existsSync,
  mkdirSync,
  openSync,
  writeFileSync,
} from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { RollbookError } from "../../../base/index.ts";
import { type CgroupSlot, type Cgroups, type Counters, drain, findCgroups } from "../cgroup/index.ts";
import { decodeOutputs, type EndedRun, PROCESS_THREATS, resultOf } from "../ending.ts";
import { OutputBuffer } from "../output.ts";
import { claimDirectory } from "../owner.ts";
import {
  type ExecResult,
  type ProgramKind,
  type SandboxEngine,
  type SandboxTask,
  type Slot,
  textOf,
} from "../sandbox.ts";
import { encode, hostArch, seccompProgram } from "../seccomp/index.ts";
import { layFiles } from "../task-files.ts";
import { FD, OWN_PIDS, type Paths, PYTHON, sandboxArgv, TASK_UID } from "./command.ts";

/** Time for a killed sandbox to disappear. After it, the slot is abandoned. */
const REAP_MS = 5_000;

export function openBubblewrap(): SandboxEngine {
  const bwrap = findProgram("bwrap");
  const setpriv = findProgram("setpriv");
  const cgroups = findCgroups();
  const runs = new Set<ProgramKind>(["command", "javascript"]);
  if (existsSync(PYTHON)) runs.add("python");
  return {
    name: "bubblewrap",
    runs,
    covers: PROCESS_THREATS,
    openSlot: async () => new BubblewrapSlot(cgroups, bwrap, setpriv),
    close: async () => {},
  };
}

class BubblewrapSlot implements Slot {
  readonly #cgroup: CgroupSlot;
  readonly #directory: string;
  readonly #paths: Paths;
  readonly #seccompFile: string;
  #child: ChildProcess | undefined;

  constructor(cgroups: Cgroups, bwrap: string, setpriv: string) {
    this.#cgroup = cgroups.openSlot();
    this.#directory = claimDirectory();
    this.#seccompFile = join(this.#directory, "seccomp.bpf");
    const etcDirectory = join(this.#directory, "etc");
    const taskDirectory = join(this.#directory, "task");
    const procsFiles = this.#cgroup.procsFiles;
    this.#paths = { bwrap, setpriv, procsFiles, taskDirectory, etcDirectory };
    writeFileSync(this.#seccompFile, encode(seccompProgram(hostArch())));
    mkdirSync(taskDirectory, { mode: 0o755 });
    mkdirSync(etcDirectory, { mode: 0o755 });
    writeFileSync(join(etcDirectory, "passwd"), `nobody:x:${TASK_UID}:${TASK_UID}:nobody:/tmp:/bin/sh\n`);
    writeFileSync(join(etcDirectory, "group"), `nogroup:x:${TASK_UID}:\n`);
    // Only the task's user may enter the slot's directory: other users of the host must not read hidden files.
    if (process.getuid?.() === 0) chownSync(this.#directory, TASK_UID, TASK_UID);
  }

  async exec(task: SandboxTask): Promise<ExecResult> {
    await layFiles(this.#paths.taskDirectory, task.files);
    this.#cgroup.limit({ ...task.limits, pids: task.limits.pids + OWN_PIDS });
    this.#cgroup.resetPeak();
    const before = this.#cgroup.counters();
    const run = await this.#run(task);
    if (!(await drain(this.#cgroup, REAP_MS))) throw stuck();
    return verdict(task, run, { before, after: this.#cgroup.counters() });
  }

  async close(): Promise<void> {
    this.#child?.kill("SIGKILL");
    await drain(this.#cgroup, REAP_MS);
    this.#cgroup.remove();
    await rm(this.#directory, { recursive: true, force: true });
  }

  #run(task: SandboxTask): Promise<BwrapRun> {
    const { limits } = task;
    const [command, ...args] = sandboxArgv(task, this.#paths) as [string, ...string[]];
    const started = performance.now();
    const seccomp = openSync(this.#seccompFile, "r");
    let child: ChildProcess;
    try {
      // Empty, because the environment of bwrap is visible in /proc/1/environ inside.
      child = spawn(command, args, {
        cwd: "/",
        env: {},
        stdio: [task.stdin.length > 0 ? "pipe" : "ignore", "pipe", "pipe", "pipe", seccomp, "pipe"],
      });
    } finally {
      closeSync(seccomp);
    }
    this.#child = child;
    return new Promise((resolve, reject) => {
      let ended: BwrapRun["ended"];
      let giveUp: NodeJS.Timeout | undefined;
      const end = (why: NonNullable<BwrapRun["ended"]>) => {
        if (ended !== undefined) return;
        ended = why;
        child.kill("SIGKILL");
        this.#cgroup.kill();
        giveUp = setTimeout(() => reject(stuck()), REAP_MS);
      };
      const timer = setTimeout(() => end("timeout"), limits.timeoutMs);
      const flood = () => end("flood");
      const stdout = gather(child, 1, new OutputBuffer(limits.outputBytes, flood));
      const stderr = gather(child, 2, new OutputBuffer(limits.outputBytes, flood));
      // Base64 needs 4/3 of the bytes, plus a newline for each file.
      const outputs = gather(child, FD.outputs, new OutputBuffer(limits.filesBytes * 2 + 4096, flood));
      const status = gather(child, FD.status, new OutputBuffer(4096, flood));
      child.stdin?.on("error", () => {}); // A program may ignore its input, so EPIPE is not an error.
      child.stdin?.end(task.stdin);
      child.on("error", (cause) => {
        clearTimeout(timer);
        reject(new RollbookError("sandbox-start-failed", {}, `${command} cannot be started.`, { cause }));
      });
      child.on("close", (code, signal) => {
        clearTimeout(timer);
        clearTimeout(giveUp);
        const wallMs = performance.now() - started;
        resolve({ code, signal, ended, wallMs, stdout, stderr, outputs, status });
      });
    });
  }
}

interface BwrapRun extends EndedRun {
  readonly code: number | null;
  readonly signal: string | null;
  readonly outputs: OutputBuffer;
  readonly status: OutputBuffer;
}

function gather(child: ChildProcess, fd: number, buffer: OutputBuffer): OutputBuffer {
  const stream = child.stdio[fd] as NodeJS.ReadableStream;
  stream.on("data", (chunk: Uint8Array) => buffer.push(chunk));
  return buffer;
}

function verdict(
  task: SandboxTask,
  run: BwrapRun,
  { before, after }: { before: Counters; after: Counters },
): ExecResult {
  const outOfMemory = after.oomKills > before.oomKills;
  // bwrap reports an exit code only if the sandbox started and the runner ran. Otherwise the sandbox failed.
  const stood = /"exit-code"/.test(textOf(run.status.bytes()));
  if (run.ended === undefined && !stood && !outOfMemory) throw fell(run);
  return resultOf({
    ...{ run, outOfMemory, before, after },
    status: stood ? (run.code ?? undefined) : undefined,
    peakMemoryBytes: after.peakMemoryBytes,
    files: decodeOutputs(task.program.outputs ?? [], run.outputs, task.limits.filesBytes),
  });
}

function fell(run: BwrapRun): RollbookError {
  const said = textOf(run.stderr.bytes()).trim().slice(0, 500);
  const died = run.signal !== null;
  return new RollbookError(
    died ? "sandbox-engine-died" : "sandbox-start-failed",
    { engine: "bubblewrap", code: run.code, signal: run.signal, said },
    died
      ? `bubblewrap was ended by ${run.signal} from outside. Run the task again.`
      : `bubblewrap could not build the sandbox (${said || `status ${run.code}`}). Run rollbook doctor.`,
  );
}

function stuck(): RollbookError {
  return new RollbookError(
    "sandbox-stuck",
    { engine: "bubblewrap" },
    "killed processes did not go away in time; the slot is given up. Run the task again.",
  );
}

function findProgram(name: string): string {
  // Fixed directories instead of PATH: an agent may have written to a directory on PATH.
  for (const directory of ["/usr/bin", "/bin", "/usr/local/bin"]) {
    const path = join(directory, name);
    try {
      accessSync(path, constants.X_OK);
      return path;
    } catch {}
  }
  throw new RollbookError(
    "sandbox-engine-missing",
    { engine: "bubblewrap", program: name },
    `${name} is not installed. Install it (apt-get install bubblewrap util-linux) or choose another engine.`,
  );
}
