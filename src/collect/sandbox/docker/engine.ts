/** The Docker engine: one warm container per slot, tasks by exec. A container is reused only if the last task left
 *  nothing in it, as seen from the host. Otherwise it is replaced.
 *  In: tasks. Out: results whose verdicts come from the container's cgroup. Needs a local daemon on Linux. */
import { existsSync } from "node:fs";
import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { RollbookError } from "../../../base/index.ts";
import { type Cgroups, type Counters, findCgroups } from "../cgroup/index.ts";
import { decodeOutputs, type EndedRun, PROCESS_THREATS, programArgv, resultOf } from "../ending.ts";
import { OutputBuffer } from "../output.ts";
import { claimDirectory, isAlive } from "../owner.ts";
import { CLEAN_ENV, type ExecResult, type SandboxEngine, type SandboxTask, type Slot } from "../sandbox.ts";
import { layFiles } from "../task-files.ts";
import { DockerClient } from "./client.ts";
import { Container, OWNER_LABEL } from "./container.ts";
import { ensureImage } from "./image.ts";

export interface DockerOptions {
  readonly socketPath?: string;
  /** If the daemon lacks the image, it is imported from this machine's own programs. */
  readonly image?: string;
}

const DEFAULT_SOCKET = "/var/run/docker.sock";
export const DEFAULT_IMAGE = "rollbook-sandbox:1";

export async function openDocker(options: DockerOptions = {}): Promise<SandboxEngine> {
  const socketPath = options.socketPath ?? DEFAULT_SOCKET;
  if (!existsSync(socketPath)) throw missing(socketPath);
  const client = new DockerClient(socketPath);
  const image = options.image ?? DEFAULT_IMAGE;
  await sweep(client);
  await ensureImage(client, image);
  const cgroups = findCgroups();
  return {
    name: "docker",
    runs: new Set(["command", "python", "javascript"]),
    covers: PROCESS_THREATS,
    openSlot: async () => new DockerSlot(client, image, cgroups),
    close: async () => client.close(),
  };
}

const INTERPRETERS = { node: "node", python: "python3" };

/** Runs the program. With $1 = 1, empties /tmp afterwards. */
const RUN = [
  "wipe=$1; shift; exec 4>&2 2>/dev/null",
  '(exec 2>&4 4>&-; exec "$@")',
  'code=$?; [ "$wipe" = 1 ] && WIPE',
  "exit $code",
].join("\n");

/** Sends the outputs as base64 lines, then empties /tmp. $1 = byte limit. */
const SEND = [
  "max=$1; shift; exec 2>/dev/null",
  'for name in "$@"; do path=/tmp/$name',
  'if [ -f "$path" ]; then printf =; head -c "$max" < "$path" | base64 -w 0; fi; echo; done',
  "WIPE",
].join("\n");

const WIPE = "cd /tmp && { chmod -R u+rwx . ; rm -rf -- * .[!.]* ..?* ; }";

class DockerSlot implements Slot {
  readonly #client: DockerClient;
  readonly #image: string;
  readonly #cgroups: Cgroups;
  readonly #directory = claimDirectory();
  #container: Container | undefined;
  #containerKey = "";

  constructor(client: DockerClient, image: string, cgroups: Cgroups) {
    this.#client = client;
    this.#image = image;
    this.#cgroups = cgroups;
  }

  async exec(task: SandboxTask): Promise<ExecResult> {
    const taskDirectory = join(this.#directory, "task");
    await mkdir(taskDirectory, { recursive: true, mode: 0o755 });
    await layFiles(taskDirectory, task.files);
    const container = await this.#warm(task, taskDirectory);
    const before = container.counters();
    const run = await this.#run(container, task);
    const after = container.counters();
    const status = run.ended === undefined ? await container.statusOf(run.execId) : undefined;
    const outOfMemory = await ranOutOfMemory(container, before, after);
    const gone = status === undefined || after === undefined || container.isEnding();
    if (run.ended === undefined && !outOfMemory && gone) throw died();
    const files = await this.#outputs(container, task, run.ended !== undefined || gone);
    if (run.ended !== undefined || outOfMemory || !container.isAsNew()) await this.#discard();
    // The group's peak covers all tasks of the container, so the peak of this task is unknown.
    return resultOf({ run, status, outOfMemory, before, after, peakMemoryBytes: null, files });
  }

  async close(): Promise<void> {
    await this.#discard();
    await rm(this.#directory, { recursive: true, force: true });
  }

  /** Limits apply to the container, so other limits need another container. */
  async #warm(task: SandboxTask, taskDirectory: string): Promise<Container> {
    const { memoryBytes, pids, cpus, scratchBytes } = task.limits;
    const limits = { memoryBytes, pids, cpus, scratchBytes };
    const key = JSON.stringify(limits);
    if (this.#container !== undefined && key === this.#containerKey) return this.#container;
    await this.#discard();
    this.#container = await Container.start(
      this.#client,
      { image: this.#image, taskDirectory, limits },
      this.#cgroups,
    );
    this.#containerKey = key;
    return this.#container;
  }

  async #discard(): Promise<void> {
    const container = this.#container;
    this.#container = undefined;
    await container?.remove();
  }

  async #run(container: Container, task: SandboxTask): Promise<ExecRun> {
    const { limits, program } = task;
    const wipe = (program.outputs ?? []).length === 0 ? "1" : "0";
    const execId = await container.createExec({
      argv: ["/bin/sh", "-c", RUN.replace("WIPE", WIPE), "sh", wipe, ...programArgv(program, INTERPRETERS)],
      env: { ...CLEAN_ENV, ...program.env },
      stdin: true,
    });
    const started = performance.now();
    let ended: ExecRun["ended"];
    let killing: Promise<void> | undefined;
    const end = (why: NonNullable<ExecRun["ended"]>) => {
      ended ??= why;
      killing ??= container.kill();
      // The error is reported below, after the output has ended. Without a handler here, it would end this process.
      killing.catch(() => {});
    };
    const timer = setTimeout(() => end("timeout"), limits.timeoutMs);
    const buffers = {
      stdout: new OutputBuffer(limits.outputBytes, () => end("flood")),
      stderr: new OutputBuffer(limits.outputBytes, () => end("flood")),
    };
    try {
      await this.#client.startExec(execId, {
        stdin: task.stdin,
        onChunk: (stream, chunk) => buffers[stream].push(chunk),
      });
    } finally {
      clearTimeout(timer);
    }
    await killing;
    return { execId, ended, wallMs: performance.now() - started, ...buffers };
  }

  async #outputs(
    container: Container,
    task: SandboxTask,
    gone: boolean,
  ): Promise<Record<string, Uint8Array>> {
    const names = task.program.outputs ?? [];
    if (names.length === 0 || gone) return {};
    const { filesBytes } = task.limits;
    const argv = ["/bin/sh", "-c", SEND.replace("WIPE", WIPE), "sh", String(filesBytes + 1), ...names];
    const execId = await container.createExec({ argv, env: CLEAN_ENV, stdin: false });
    const sent = new OutputBuffer(filesBytes * 2 + 4096);
    // Processes left by the program may slow or stop this step. The outputs are then missing.
    const timer = setTimeout(() => container.kill().catch(() => {}), task.limits.timeoutMs);
    try {
      await this.#client.startExec(execId, {
        stdin: new Uint8Array(),
        onChunk: (_, chunk) => sent.push(chunk),
      });
    } finally {
      clearTimeout(timer);
    }
    return decodeOutputs(names, sent, filesBytes);
  }
}

interface ExecRun extends EndedRun {
  readonly execId: string;
}

async function ranOutOfMemory(
  container: Container,
  before: Counters | undefined,
  after: Counters | undefined,
): Promise<boolean> {
  if (before !== undefined && after !== undefined) return after.oomKills > before.oomKills;
  return (await container.state())?.OOMKilled ?? false;
}

/** Removes containers whose owner was killed before it could remove them. */
async function sweep(client: DockerClient): Promise<void> {
  const filters = encodeURIComponent(JSON.stringify({ label: [OWNER_LABEL] }));
  const found = (await client.call("GET", `/containers/json?all=1&filters=${filters}`)) as {
    Id: string;
    Labels: Record<string, string>;
  }[];
  for (const { Id, Labels } of found)
    if (!isAlive(Labels[OWNER_LABEL]!))
      await client.call("DELETE", `/containers/${Id}?force=1&v=1`, { expect: [404, 409] });
}

function missing(socketPath: string): RollbookError {
  return new RollbookError(
    "sandbox-engine-missing",
    { engine: "docker", socketPath },
    `no Docker daemon listens at ${socketPath}. Start one, or choose another engine.`,
  );
}

function died(): RollbookError {
  return new RollbookError(
    "sandbox-engine-died",
    { engine: "docker" },
    "the container ended while a task ran, and not by the task. Run the task again.",
  );
}
