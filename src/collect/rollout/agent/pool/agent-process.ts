/** One process of an agent. In: a command line, then one request at a time. Out: the agent's return value or error.
 *  If the process ends, floods the channel or ignores its stop signal, it is killed and its request fails by the
 *  agent. */
import { type ChildProcess, spawn } from "node:child_process";
import type { Duplex } from "node:stream";
import { isDigest, isObject, type Json } from "../../../../base/index.ts";
import type { Ending } from "../../../../contract/index.ts";
import { errorFirst } from "../error-line.ts";
import { cutBy, endingIn, failedBy } from "../failure.ts";
import { type FromAgent, lineSplitter, MAX_MESSAGE_CHARS, type ToAgent, unpack } from "./wire.ts";

/** Description of a module, which its process sends after loading it. */
export type LoadedAgent = Omit<Extract<FromAgent, { kind: "ready" }>, "kind">;

/** Time limits for an agent to stop after its signal, and to load. */
const STOP_MS = 2_000;
const LOAD_MS = 60_000;
/** Time for which we still read the output of an ended process. */
const DRAIN_MS = 500;
const MAX_LOG_CHARS = 16 * 1024;
const MAX_TAIL_CHARS = 2_000;

interface Pending {
  readonly id: number;
  began: boolean;
  resolve(value: unknown): void;
  reject(error: unknown): void;
}

export class AgentProcess {
  readonly #child: ChildProcess;
  readonly #channel: Duplex;
  readonly loaded: Promise<LoadedAgent>;
  #ready!: { resolve(loaded: LoadedAgent): void; reject(error: unknown): void };
  #pending: Pending | undefined;
  #log: (line: string) => void = () => {};
  readonly #printed: ReturnType<typeof lineSplitter>[] = [];
  #tail = "";
  #requests = 0;
  #ended: string | undefined;

  constructor([command, ...args]: readonly string[], env: NodeJS.ProcessEnv) {
    // A separate process group: Ctrl-C reaches only the launcher, and a kill reaches all processes of the agent.
    this.#child = spawn(command!, args, { env, detached: true, stdio: ["ignore", "pipe", "pipe", "pipe"] });
    this.#channel = this.#child.stdio[3] as Duplex;
    this.loaded = new Promise((resolve, reject) => {
      this.#ready = { resolve, reject };
    });
    this.loaded.catch(() => {});
    const timer = setTimeout(() => this.kill(`did not load within ${LOAD_MS} ms`), LOAD_MS);
    this.loaded.then(
      () => clearTimeout(timer),
      () => clearTimeout(timer),
    );
    this.#listen();
    living.add(this);
  }

  get isAlive(): boolean {
    return this.#ended === undefined;
  }

  /** Resolves with the agent's answer. Forwards the signal, and kills an agent that ignores it. */
  request(
    make: (id: number) => ToAgent,
    { signal, log }: { readonly signal?: AbortSignal; readonly log: (line: string) => void },
  ): Promise<unknown> {
    const id = ++this.#requests;
    this.#log = log;
    let timer: NodeJS.Timeout | undefined;
    const abort = () => {
      const reason: unknown = signal?.reason;
      const message = reason instanceof Error ? reason.message : "the rollout was cancelled";
      const isLimit = (reason as { code?: unknown } | undefined)?.code === "limit-time";
      this.#say({ kind: "abort", id, message, ...(isLimit ? { limit: "time" as const } : {}) });
      timer = setTimeout(() => this.kill("did not stop when told"), STOP_MS);
    };
    this.hold(true);
    return new Promise<unknown>((resolve, reject) => {
      this.#pending = { id, began: false, resolve, reject };
      this.#tail = "";
      if (this.#ended !== undefined) {
        this.#fail();
        return;
      }
      this.#say(make(id));
      if (signal?.aborted) abort();
      else signal?.addEventListener("abort", abort, { once: true });
    }).finally(() => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", abort);
      this.#pending = undefined;
      this.hold(false);
    });
  }

  /** An idle process does not keep the launcher running. */
  hold(busy: boolean): void {
    const change = busy ? "ref" : "unref";
    this.#child[change]();
    for (const stream of this.#child.stdio) (stream as { ref?(): void; unref?(): void } | null)?.[change]?.();
  }

  kill(why: string): void {
    this.#ended ??= why;
    if (this.#child.pid === undefined) return;
    try {
      process.kill(-this.#child.pid, "SIGKILL");
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
    }
  }

  #listen(): void {
    const messages = lineSplitter((line) => this.#hear(line), {
      most: MAX_MESSAGE_CHARS,
      onLong: () => this.kill(`sent a message of more than ${MAX_MESSAGE_CHARS} characters`),
    });
    this.#channel.setEncoding("utf8").on("data", (chunk: unknown) => messages.push(chunk as string));
    // An ended process reads nothing more. Its exit handler reports the failure.
    this.#channel.on("error", () => {});
    for (const stream of [this.#child.stdout!, this.#child.stderr!]) {
      const lines = lineSplitter((line) => this.#print(line), { most: MAX_LOG_CHARS });
      stream.setEncoding("utf8").on("data", (chunk: string) => lines.push(chunk));
      stream.on("end", () => lines.end());
      this.#printed.push(lines);
    }
    this.#child.once("error", (cause) => this.#end(`cannot be started: ${cause.message}`));
    // A program left behind by the agent may hold its output open forever. The "close" event would then never come.
    this.#child.once("exit", () => {
      const timer = setTimeout(() => {
        for (const stream of this.#child.stdio) stream?.destroy();
      }, DRAIN_MS);
      this.#child.once("close", () => clearTimeout(timer));
    });
    this.#child.once("close", (code, signal) => {
      const tail = this.#tail.trim() === "" ? "" : `: ${errorFirst(this.#tail)}`;
      this.#end(this.#ended ?? `exited with ${signal ?? code} before it returned${tail}`);
    });
  }

  #print(line: string): void {
    this.#tail = `${this.#tail}\n${line}`.slice(-MAX_TAIL_CHARS);
    if (line.trim() !== "") this.#log(line);
  }

  #end(why: string): void {
    this.#ended ??= why;
    living.delete(this);
    this.#ready.reject(new Error(this.#ended));
    this.#fail();
  }

  #fail(): void {
    if (this.#pending === undefined) return;
    const { began, reject } = this.#pending;
    const message = `the agent's process ${this.#ended}`;
    reject(began ? failedBy("agent", message) : new NotBegun(message));
  }

  #say(message: ToAgent): void {
    if (this.#channel.writable) this.#channel.write(`${JSON.stringify(message)}\n`);
  }

  #hear(line: string): void {
    const message = readMessage(line);
    switch (message?.kind) {
      case undefined:
        this.kill("wrote to the channel of the launcher");
        return;
      case "log":
        this.#log(message.message);
        return;
      case "unfit":
        this.#ended = message.message;
        return;
      case "ready":
        this.#ready.resolve(message);
        return;
      case "began":
        if (this.#pending?.id === message.id) this.#pending.began = true;
        return;
      case "threw":
        if (message.last) this.#ended ??= "ended after an uncaught error";
        this.#settle(message.id, ({ reject }) => reject(new AgentThrew(message.ending, message.named)));
        return;
      case "returned":
        this.#settle(message.id, ({ resolve }) => resolve(unpack(message.value)));
        return;
      default:
        message satisfies never;
    }
  }

  /** Settles after the output printed before the answer has been read, so that it is logged with this request. */
  #settle(id: number, settle: (pending: Pending) => void): void {
    setImmediate(() => {
      const pending = this.#pending;
      if (pending?.id !== id) return;
      for (const lines of this.#printed) lines.end();
      try {
        settle(pending);
      } catch (error) {
        pending.reject(error);
      }
    });
  }
}

/** The process ended before it read the request. Another process may serve the request. */
export class NotBegun extends Error {}

/** An error of the agent, as its process describes it. */
export class AgentThrew extends Error {
  readonly ending: Ending;
  readonly named: boolean;

  constructor(ending: Ending, named: boolean) {
    super(ending.kind === "failed" ? ending.message : ending.kind);
    this.ending = ending;
    this.named = named;
  }

  /** Makes an error from which the executor reads the same ending. */
  asError(): Error {
    const { ending } = this;
    if (ending.kind === "truncated") return cutBy(ending.limit);
    return ending.kind === "failed" ? failedBy(ending.owner, ending.message) : new Error("the agent failed");
  }
}

/** Undefined for a line that is not a message of our protocol. */
function readMessage(line: string): FromAgent | undefined {
  let message: unknown;
  try {
    message = JSON.parse(line);
  } catch {
    return undefined;
  }
  if (!isObject(message)) return undefined;
  const {
    kind,
    message: text,
    id,
    ending,
    named,
    last,
    value,
    limits,
    scorer,
  } = message as Record<string, Json>;
  switch (kind) {
    case "log":
    case "unfit":
      return typeof text === "string" ? { kind, message: text } : undefined;
    case "began":
      return typeof id === "number" ? { kind, id } : undefined;
    case "returned":
      return typeof id === "number" && value !== undefined ? { kind, id, value } : undefined;
    case "threw": {
      const known = endingIn(ending);
      return typeof id === "number" && known !== undefined
        ? { kind, id, ending: known, named: named === true, last: last === true }
        : undefined;
    }
    case "ready":
      return readLoaded(limits, scorer);
    default:
      return undefined;
  }
}

function readLoaded(limits: Json | undefined, scorer: Json | undefined): FromAgent | undefined {
  const known: Record<string, number> = {};
  for (const [name, limit] of Object.entries(isObject(limits) ? limits : {})) {
    if (typeof limit !== "number" || !(limit > 0)) return undefined;
    known[name] = limit;
  }
  const ready = { kind: "ready" as const, ...(limits === undefined ? {} : { limits: known }) };
  if (scorer === undefined) return ready;
  if (!isObject(scorer) || typeof scorer.name !== "string" || !isDigest(scorer.digest)) return undefined;
  return { ...ready, scorer: { name: scorer.name, digest: scorer.digest } };
}

const living = new Set<AgentProcess>();

/** Kills all agent processes of this launcher, busy or idle. */
export function endAgentProcesses(): void {
  for (const each of living) each.kill("ends with the launcher");
}

process.on("exit", endAgentProcesses);
