/** Runs one program in a fresh QuickJS, compiled to WebAssembly, with its own capped memory.
 *  In: task, compiled module, sink for output. Out: its ending. Everything that the program can access is made here,
 *  and nothing survives the call. Runs in a worker thread, which the engine may terminate at any moment. */
import releaseSync from "@jitl/quickjs-wasmfile-release-sync";
import {
  newQuickJSWASMModuleFromVariant,
  newVariant,
  type QuickJSContext,
  type QuickJSHandle,
  type QuickJSRuntime,
  type QuickJSSyncVariant,
} from "quickjs-emscripten-core";
import { floodBytes } from "../output.ts";
import { absolute, FileTree } from "./file-tree.ts";
import { FS_MODULE, PRELUDE } from "./guest.ts";
import type { FromWorker, GuestEnd, GuestTask } from "./messages.ts";
import { type WasmModule, wasm } from "./wasm.ts";

// The package has types for CommonJS, where the default export is one level deeper.
const variant = releaseSync as unknown as QuickJSSyncVariant;

const PAGE = 65_536;
/** QuickJS is linked for an initial memory of 16 MiB. */
const INITIAL_PAGES = 256;
const STACK_BYTES = 256 * 1024;
/** Node's status for a program whose top-level await never settles. */
const UNSETTLED = 13;
/** Number of writes that are sent one by one. Later writes are batched to at least `GATHERED_BYTES`. */
const PROMPT_MESSAGES = 1_000;
const GATHERED_BYTES = 4_096;

export async function runGuest(
  task: GuestTask,
  wasmModule: WasmModule,
  send: (message: FromWorker) => void,
): Promise<GuestEnd> {
  const maximum = Math.max(INITIAL_PAGES, Math.floor(task.limits.memoryBytes / PAGE));
  // The effective cap: the memory limit of QuickJS does not count everything it allocates.
  const wasmMemory = new wasm.Memory({ initial: INITIAL_PAGES, maximum });
  const quickjs = await newQuickJSWASMModuleFromVariant(newVariant(variant, { wasmModule, wasmMemory }));
  const guest = new Guest(task, send);
  let outcome: Pick<GuestEnd, "exitCode" | "why">;
  try {
    const runtime = quickjs.newRuntime();
    runtime.setMaxStackSize(STACK_BYTES);
    outcome = guest.run(runtime);
    // No disposal: the instance and all its memory are dropped as a whole, in any state.
  } catch (error) {
    outcome = guest.crashed(error);
  }
  guest.flush("stdout");
  guest.flush("stderr");
  return { ...outcome, files: guest.outputs(), peakMemoryBytes: wasmMemory.buffer.byteLength };
}

class Guest {
  readonly #task: GuestTask;
  readonly #send: (message: FromWorker) => void;
  readonly #tree: FileTree;
  readonly #deadline: number;
  readonly #written = { stdout: 0, stderr: 0 };
  #messages = 0;
  readonly #unsent = {
    stdout: { parts: [] as Uint8Array[], bytes: 0 },
    stderr: { parts: [] as Uint8Array[], bytes: 0 },
  };
  #stop: { exitCode: number | null; why: GuestEnd["why"] } | undefined;

  constructor(task: GuestTask, send: (message: FromWorker) => void) {
    this.#task = task;
    this.#send = send;
    this.#tree = new FileTree(task.files, task.stdin, task.limits.scratchBytes);
    this.#deadline = performance.now() + task.limits.timeoutMs;
  }

  run(runtime: QuickJSRuntime): Pick<GuestEnd, "exitCode" | "why"> {
    runtime.setInterruptHandler(() => {
      if (performance.now() > this.#deadline) this.#stop ??= { exitCode: null, why: "timeout" };
      return this.#stop !== undefined;
    });
    const context = runtime.newContext();
    this.#installHost(context);
    const prelude = context.unwrapResult(context.evalCode(PRELUDE, "prelude.js"));
    context.setProp(context.global, "__fs", context.getProp(prelude, "fs"));
    runtime.setModuleLoader(
      (name) => this.#loadModule(name),
      (base, name) => (name.startsWith(".") ? absolute(`${base}/../${name}`) : name),
    );
    context.unwrapResult(context.evalCode('import "node:fs"', "start.mjs", { type: "module" }));
    const entry = absolute(this.#task.entry);
    const source = new TextDecoder().decode(this.#tree.read(entry));
    const started = context.evalCode(source, entry, { type: "module" });
    if (started.error !== undefined) return this.#uncaught(context, started.error);
    return this.#settle(context, {
      runtime,
      started: started.value,
      runTimer: context.getProp(prelude, "runTimer"),
    });
  }

  /** A trap or an abort of QuickJS is caused by the program, not by us, so it is data. */
  crashed(error: unknown): Pick<GuestEnd, "exitCode" | "why"> {
    if (this.#stop !== undefined) return this.#stop;
    const memory = /out of memory|OOM|Cannot enlarge|allocation|null function/i.test(String(error));
    return { exitCode: null, why: memory ? "memory" : "crash" };
  }

  outputs(): Map<string, Uint8Array> {
    const files = new Map<string, Uint8Array>();
    for (const path of this.#task.outputs) {
      const content = this.#tree.read(`/tmp/${path}`);
      if (content !== undefined) files.set(path, content);
    }
    return files;
  }

  /** Runs jobs and timers until the program's promise settles and nothing is left to do. */
  #settle(
    context: QuickJSContext,
    {
      runtime,
      started,
      runTimer,
    }: { runtime: QuickJSRuntime; started: QuickJSHandle; runTimer: QuickJSHandle },
  ): Pick<GuestEnd, "exitCode" | "why"> {
    for (;;) {
      const jobs = runtime.executePendingJobs();
      if (jobs.error !== undefined) return this.#uncaught(context, jobs.error);
      if (this.#stop !== undefined) return this.#stop;
      const state = context.getPromiseState(started);
      if (state.type === "rejected") return this.#uncaught(context, state.error);
      const timer = context.callFunction(runTimer, context.undefined);
      if (timer.error !== undefined) return this.#uncaught(context, timer.error);
      if (context.dump(timer.value) === true) continue;
      if (runtime.hasPendingJob()) continue;
      if (state.type === "pending") return { exitCode: UNSETTLED, why: "exit" };
      const process = context.getProp(context.global, "process");
      const code = context.dump(context.getProp(process, "exitCode"));
      return { exitCode: typeof code === "number" ? code & 255 : 0, why: "exit" };
    }
  }

  #uncaught(context: QuickJSContext, error: QuickJSHandle): Pick<GuestEnd, "exitCode" | "why"> {
    if (this.#stop !== undefined) return this.#stop;
    const thrown: unknown = context.dump(error);
    const { name, message, stack } = (typeof thrown === "object" && thrown !== null ? thrown : {}) as Record<
      string,
      unknown
    >;
    if (name === "InternalError" && message === "out of memory") return { exitCode: null, why: "memory" };
    const said = name === undefined ? String(thrown) : `${name}: ${message}\n${stack ?? ""}`;
    this.#write("stderr", Buffer.from(`Uncaught ${said}\n`));
    return { exitCode: 1, why: "exit" };
  }

  #loadModule(name: string): string | { error: Error } {
    if (name === "node:fs" || name === "fs") return FS_MODULE;
    const content = name.startsWith("/task/") ? this.#tree.read(name) : undefined;
    return content === undefined
      ? { error: new Error(`Cannot find module '${name}'`) }
      : new TextDecoder().decode(content);
  }

  #write(stream: "stdout" | "stderr", bytes: Uint8Array): void {
    const { outputBytes } = this.#task.limits;
    // Sends one byte past the limit, so that the receiver knows that output was cut.
    const room = outputBytes + 1 - this.#written[stream];
    if (room > 0 && bytes.byteLength > 0)
      this.#sendOutput(stream, Uint8Array.prototype.slice.call(bytes, 0, room));
    this.#written[stream] += bytes.byteLength;
    if (this.#written[stream] > floodBytes(outputBytes)) this.#stop ??= { exitCode: null, why: "flood" };
  }

  /** Sends the first writes at once. Later small writes are batched, because a message costs far more than a byte. */
  #sendOutput(stream: "stdout" | "stderr", bytes: Uint8Array): void {
    const unsent = this.#unsent[stream];
    unsent.parts.push(bytes);
    unsent.bytes += bytes.byteLength;
    if (this.#messages < PROMPT_MESSAGES || unsent.bytes >= GATHERED_BYTES) this.flush(stream);
  }

  flush(stream: "stdout" | "stderr"): void {
    const { parts } = this.#unsent[stream];
    if (parts.length === 0) return;
    this.#unsent[stream] = { parts: [], bytes: 0 };
    this.#messages++;
    this.#send({ kind: "output", stream, bytes: new Uint8Array(Buffer.concat(parts)) });
  }

  #installHost(context: QuickJSContext): void {
    const host = context.newObject();
    const provide = (name: string, call: (...args: QuickJSHandle[]) => QuickJSHandle | undefined) =>
      context.setProp(
        host,
        name,
        context.newFunction(name, (...args) => call(...args) ?? context.undefined),
      );
    const bytesOf = (handle: QuickJSHandle): Uint8Array =>
      context.typeof(handle) === "string"
        ? Buffer.from(context.getString(handle))
        : context.getArrayBuffer(handle).value.slice();
    provide("write", (stream, data) => {
      this.#write(context.getString(stream!) as "stdout", bytesOf(data!));
      return undefined;
    });
    provide("exit", (code) => {
      this.#stop ??= { exitCode: context.getNumber(code!) & 255, why: "exit" };
      return undefined;
    });
    provide("now", () => context.newNumber(performance.now()));
    provide("sleep", (ms) => {
      const wait = Math.min(context.getNumber(ms!), this.#deadline - performance.now() + 1);
      if (wait > 0) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, wait);
      return undefined;
    });
    this.#installFiles(context, provide, bytesOf);
    context.setProp(
      host,
      "argv",
      jsonHandle(context, ["quickjs", absolute(this.#task.entry), ...this.#task.args]),
    );
    context.setProp(host, "env", jsonHandle(context, this.#task.env));
    context.setProp(context.global, "__host", host);
  }

  #installFiles(
    context: QuickJSContext,
    provide: (name: string, call: (...args: QuickJSHandle[]) => QuickJSHandle | undefined) => void,
    bytesOf: (handle: QuickJSHandle) => Uint8Array,
  ): void {
    provide("read", (path, asText) => {
      const content = this.#tree.read(context.getString(path!));
      if (content === undefined) return undefined;
      return context.dump(asText!) === true
        ? context.newString(new TextDecoder().decode(content))
        : context.newArrayBuffer(Uint8Array.prototype.slice.call(content).buffer as ArrayBuffer);
    });
    provide("writeFile", (path, data) => {
      const fault = this.#tree.write(context.getString(path!), bytesOf(data!));
      return fault === undefined ? undefined : context.newString(fault);
    });
    provide("makeFolder", (path, recursive) => {
      const fault = this.#tree.makeFolder(context.getString(path!), context.dump(recursive!) === true);
      return fault === undefined ? undefined : context.newString(fault);
    });
    provide("encode", (text) =>
      context.newArrayBuffer(new TextEncoder().encode(context.getString(text!)).buffer as ArrayBuffer),
    );
    provide("remove", (path) => (this.#tree.remove(context.getString(path!)) ? context.true : context.false));
    provide("list", (path) => {
      const names = this.#tree.list(context.getString(path!));
      return names === undefined ? undefined : jsonHandle(context, names);
    });
  }
}

function jsonHandle(context: QuickJSContext, value: unknown): QuickJSHandle {
  // Uses JSON.parse inside, not eval, because the text may contain anything.
  const json = context.getProp(context.global, "JSON");
  const parse = context.getProp(json, "parse");
  return context.unwrapResult(context.callFunction(parse, json, context.newString(JSON.stringify(value))));
}
