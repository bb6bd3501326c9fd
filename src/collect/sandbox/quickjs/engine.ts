/** The QuickJS engine: JavaScript in WebAssembly in a worker thread. Runs wherever Node runs, without privileges.
 *  In: JavaScript tasks. Out: results. WebAssembly is the boundary: the program cannot make system calls. It has only
 *  the few functions of guest.ts. Does not run commands or Python. */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Worker } from "node:worker_threads";
import { RollbookError, reasonOf } from "../../../base/index.ts";
import { startThread } from "../../start-thread.ts";
import { OutputBuffer } from "../output.ts";
import {
  CLEAN_ENV,
  type ExecResult,
  type SandboxEngine,
  type SandboxTask,
  type Slot,
  type Threat,
} from "../sandbox.ts";
import type { FromWorker, GuestEnd, GuestTask } from "./messages.ts";
import { type WasmModule, wasm } from "./wasm.ts";

/** Processes, signals and privileges do not exist here, so those threats do not apply. */
const COVERS: readonly Threat[] = [
  ...(["write-outside", "host-files", "network", "environment"] as const),
  ...(["memory", "time", "output", "scratch", "leftovers"] as const),
];

/** A program past its deadline is interrupted from inside. If this is impossible (for example in a regular expression),
 *  its thread is terminated this much later. */
const GRACE_MS = 100;

const require = createRequire(import.meta.url);

let compiled: Promise<WasmModule> | undefined;

export async function openQuickjs(): Promise<SandboxEngine> {
  compiled ??= wasm.compile(readFileSync(require.resolve("@jitl/quickjs-wasmfile-release-sync/wasm")));
  const wasmModule = await compiled;
  return {
    name: "quickjs",
    runs: new Set(["javascript"]),
    covers: new Set(COVERS),
    openSlot: async () => new QuickjsSlot(wasmModule),
    close: async () => {},
  };
}

class QuickjsSlot implements Slot {
  readonly #wasmModule: WasmModule;
  #worker: Worker | undefined;

  constructor(wasmModule: WasmModule) {
    this.#wasmModule = wasmModule;
  }

  async exec(task: SandboxTask): Promise<ExecResult> {
    this.#worker ??= await startWorker(this.#wasmModule);
    const worker = this.#worker;
    const stdout = new OutputBuffer(task.limits.outputBytes);
    const stderr = new OutputBuffer(task.limits.outputBytes);
    const started = performance.now();
    const end = await this.#converse(worker, task, { stdout, stderr });
    const files = fitting(end.files, task.limits.filesBytes);
    return {
      ...(end.exitCode === null
        ? { exitCode: null, signal: SIGNAL[end.why] }
        : { exitCode: end.exitCode, signal: null }),
      stdout: stdout.bytes(),
      stderr: stderr.bytes(),
      truncated: { stdout: stdout.truncated, stderr: stderr.truncated },
      timedOut: end.why === "timeout",
      outOfMemory: end.why === "memory",
      pidsExceeded: false,
      outputExceeded: end.why === "flood",
      files,
      usage: { wallMs: performance.now() - started, cpuMs: null, peakMemoryBytes: end.peakMemoryBytes },
    };
  }

  async close(): Promise<void> {
    await this.#worker?.terminate();
    this.#worker = undefined;
  }

  #converse(
    worker: Worker,
    task: SandboxTask,
    into: { stdout: OutputBuffer; stderr: OutputBuffer },
  ): Promise<GuestEnd> {
    return new Promise<GuestEnd>((resolve, reject) => {
      const lose = (outcome: () => void) => {
        finish();
        this.#worker = undefined;
        worker.terminate().then(outcome, reject);
      };
      const onMessage = (message: FromWorker) => {
        if (message.kind === "ready") return;
        if (message.kind === "output") return into[message.stream].push(message.bytes);
        finish();
        resolve(message.end);
      };
      const onError = (error: Error) =>
        lose(() => {
          // The thread's own heap is limited too, and only the program can have filled it.
          if ((error as NodeJS.ErrnoException).code === "ERR_WORKER_OUT_OF_MEMORY")
            resolve(lost("memory", task));
          else reject(died(error));
        });
      const onExit = () => lose(() => reject(died()));
      const timer = setTimeout(
        () => lose(() => resolve(lost("timeout", task))),
        task.limits.timeoutMs + GRACE_MS,
      );
      const finish = () => {
        clearTimeout(timer);
        worker.off("message", onMessage).off("error", onError).off("exit", onExit);
        worker.unref();
      };
      worker.ref();
      worker.on("message", onMessage).on("error", onError).on("exit", onExit);
      worker.postMessage(guestTask(task));
    });
  }
}

const SIGNAL: Readonly<Record<GuestEnd["why"], string>> = {
  exit: "SIGKILL",
  timeout: "SIGKILL",
  memory: "SIGKILL",
  flood: "SIGKILL",
  crash: "SIGABRT",
};

async function startWorker(wasmModule: WasmModule): Promise<Worker> {
  const options = {
    env: {},
    workerData: { wasmModule },
    execArgv: [],
    resourceLimits: { maxOldGenerationSizeMb: 512 },
  };
  const worker = startThread(import.meta.url, "worker", options);
  await new Promise<void>((resolve, reject) => {
    const onError = (cause: Error) => reject(died(cause));
    const onExit = () => reject(died());
    // The first message reports that the modules are loaded, so that no program spends its own time on loading.
    worker
      .on("error", onError)
      .on("exit", onExit)
      .once("message", () => {
        worker.off("error", onError).off("exit", onExit);
        resolve();
      });
  });
  // A terminating thread may still report an error after its task was settled.
  worker.on("error", () => {});
  return worker;
}

function guestTask(task: SandboxTask): GuestTask {
  const { program } = task;
  if (program.kind !== "javascript") throw new Error("unreachable: the pool refuses other programs");
  return {
    entry: program.entry,
    args: program.args ?? [],
    env: { ...CLEAN_ENV, ...program.env },
    stdin: task.stdin,
    files: task.files,
    outputs: program.outputs ?? [],
    limits: task.limits,
  };
}

function fitting(files: ReadonlyMap<string, Uint8Array>, filesBytes: number): Record<string, Uint8Array> {
  let room = filesBytes;
  return Object.fromEntries(
    [...files].filter(([, content]) => {
      if (content.byteLength > room) return false;
      room -= content.byteLength;
      return true;
    }),
  );
}

function lost(why: "timeout" | "memory", task: SandboxTask): GuestEnd {
  return { exitCode: null, why, files: new Map(), peakMemoryBytes: task.limits.memoryBytes };
}

function died(cause?: unknown): RollbookError {
  const why = cause === undefined ? "its thread ended" : reasonOf(cause);
  return new RollbookError(
    "sandbox-engine-died",
    { engine: "quickjs", why },
    `the quickjs engine died while a task ran (${why}). Run the task again.`,
    { cause },
  );
}
