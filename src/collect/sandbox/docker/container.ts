/** One hardened container, kept warm: it holds namespaces and a cgroup while tasks are executed in it one by one.
 *  In: limits and the directory shown as /task. Out: start, exec, counters, the answer "is it as new?", removal. */
import { readdirSync } from "node:fs";
import { RollbookError } from "../../../base/index.ts";
import type { Cgroups, CgroupView, Counters } from "../cgroup/index.ts";
import { claimNameAsync, isEnding, ownerTag } from "../owner.ts";
import { CLEAN_ENV, type Limits } from "../sandbox.ts";
import { ociProfile } from "../seccomp/index.ts";
import type { DockerClient } from "./client.ts";

export const OWNER_LABEL = "rollbook.owner";
const TASK_USER = "65534:65534";

/** Process 1, the runner, and the threads that Docker itself needs inside for a moment to start an exec. */
const OWN_PIDS = 12;

interface ContainerSpec {
  readonly image: string;
  readonly taskDirectory: string;
  readonly limits: Pick<Limits, "memoryBytes" | "pids" | "cpus" | "scratchBytes">;
}

export class Container {
  readonly id: string;
  readonly #client: DockerClient;
  readonly #group: CgroupView;
  readonly #pid: number;

  private constructor(client: DockerClient, id: string, pid: number, cgroups: Cgroups) {
    this.#client = client;
    this.id = id;
    this.#pid = pid;
    this.#group = cgroups.groupOf(pid);
  }

  static async start(client: DockerClient, spec: ContainerSpec, cgroups: Cgroups): Promise<Container> {
    const name = await claimNameAsync(async (candidate) => {
      const made = await client.call("POST", `/containers/create?name=${candidate}`, {
        body: settings(spec),
        expect: [409],
      });
      return made !== undefined;
    });
    try {
      await client.call("POST", `/containers/${name}/start`);
      const { State } = (await client.call("GET", `/containers/${name}/json`)) as { State: { Pid: number } };
      return new Container(client, name, State.Pid, cgroups);
    } catch (error) {
      await client.call("DELETE", `/containers/${name}?force=1&v=1`, { expect: [404] });
      throw error;
    }
  }

  /** Undefined once the container has ended and its group with it. */
  counters(): Counters | undefined {
    try {
      return this.#group.counters();
    } catch (error) {
      if (["ENOENT", "ENODEV"].includes((error as NodeJS.ErrnoException).code ?? "")) return undefined;
      throw error;
    }
  }

  async createExec(options: {
    argv: readonly string[];
    env: Record<string, string>;
    stdin: boolean;
  }): Promise<string> {
    const made = await this.#client.call("POST", `/containers/${this.id}/exec`, {
      body: {
        AttachStdin: options.stdin,
        AttachStdout: true,
        AttachStderr: true,
        Cmd: options.argv,
        Env: Object.entries(options.env).map(([key, value]) => `${key}=${value}`),
        User: TASK_USER,
        WorkingDir: "/task",
      },
    });
    return (made as { Id: string }).Id;
  }

  /** The status of an exec whose output has ended, or undefined when Docker no longer knows it. */
  async statusOf(execId: string): Promise<number | undefined> {
    for (let tries = 0; tries < 500; tries++) {
      const state = (await this.#client.call("GET", `/exec/${execId}/json`, { expect: [404, 409] })) as
        | { Running: boolean; ExitCode: number | null; Pid: number }
        | undefined;
      if (state === undefined) return undefined;
      // Docker reports its own failure to start a process as status 126, and as text on stdout.
      if (!state.Running && state.ExitCode !== null && state.Pid === 0) throw notStarted(this.id);
      if (!state.Running && state.ExitCode !== null) return state.ExitCode;
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
    throw new RollbookError(
      "sandbox-stuck",
      { execId },
      "Docker keeps calling an ended exec running. Run the task again.",
    );
  }

  async state(): Promise<{ Running: boolean; OOMKilled: boolean } | undefined> {
    const seen = await this.#client.call("GET", `/containers/${this.id}/json`, { expect: [404] });
    return (seen as { State: { Running: boolean; OOMKilled: boolean } } | undefined)?.State;
  }

  /** Process 1 is going or gone, which nothing inside can bring about: signals from inside do not reach it. */
  isEnding(): boolean {
    return isEnding(this.#pid);
  }

  /** Nothing runs but process 1 and /tmp is empty, seen from the host, which the task cannot deceive.
   *  Where the host may not look (not root), the answer is no. */
  isAsNew(): boolean {
    try {
      return this.#group.members() === 1 && readdirSync(`/proc/${this.#pid}/root/tmp`).length === 0;
    } catch {
      return false;
    }
  }

  async kill(): Promise<void> {
    await this.#client.call("POST", `/containers/${this.id}/kill`, { expect: [404, 409] });
  }

  async remove(): Promise<void> {
    await this.#client.call("DELETE", `/containers/${this.id}?force=1&v=1`, { expect: [404, 409] });
  }
}

function notStarted(container: string): RollbookError {
  return new RollbookError(
    "sandbox-start-failed",
    { engine: "docker", container },
    `Docker could not start a program in ${container}. Run the task again.`,
  );
}

/** Process 1 is root without any capability: the task, being nobody, can neither signal it nor read its memory. */
function settings({ image, taskDirectory, limits }: ContainerSpec): unknown {
  return {
    Image: image,
    Cmd: ["tail", "-f", "/dev/null"],
    Env: Object.entries(CLEAN_ENV).map(([key, value]) => `${key}=${value}`),
    User: "0:0",
    WorkingDir: "/",
    Hostname: "sandbox",
    NetworkDisabled: true,
    // Nothing inside is worth a gentle end, and process 1 would ignore it.
    StopSignal: "SIGKILL",
    Labels: { [OWNER_LABEL]: ownerTag() },
    HostConfig: {
      NetworkMode: "none",
      IpcMode: "none",
      ReadonlyRootfs: true,
      Memory: limits.memoryBytes,
      MemorySwap: limits.memoryBytes,
      PidsLimit: limits.pids + OWN_PIDS,
      NanoCpus: Math.round(limits.cpus * 1e9),
      CapDrop: ["ALL"],
      SecurityOpt: ["no-new-privileges", `seccomp=${JSON.stringify(ociProfile())}`],
      Tmpfs: {
        "/tmp": `rw,exec,nosuid,nodev,mode=1777,size=${limits.scratchBytes}`,
        // Docker mounts a message queue file system that anyone may write: files there would outlive the task.
        "/dev/mqueue": "ro,noexec,nosuid,nodev,size=4096",
      },
      Binds: [`${taskDirectory}:/task:ro`],
      LogConfig: { Type: "none" },
      Ulimits: [
        { Name: "nofile", Soft: 256, Hard: 256 },
        { Name: "core", Soft: 0, Hard: 0 },
        { Name: "fsize", Soft: limits.scratchBytes, Hard: limits.scratchBytes },
      ],
    },
  };
}
