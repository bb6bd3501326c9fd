/** One hardened container, kept warm: it holds namespaces and a cgroup while tasks are executed in it one by one.
 *  In: limits and the directory mounted as /task. Out: start, exec, counters, a check for reuse, removal. */
import { readdirSync } from "node:fs";
import { RollbookError } from "../../../base/index.ts";
import type { Cgroups, CgroupView, Counters } from "../cgroup/index.ts";
import { claimNameAsync, isEnding, ownerTag } from "../owner.ts";
import { CLEAN_ENV, type Limits } from "../sandbox.ts";
import { ociProfile } from "../seccomp/index.ts";
import type { DockerClient } from "./client.ts";

export const OWNER_LABEL = "rollbook.owner";
const TASK_USER = "65534:65534";

/** Process 1, the runner, and the threads that Docker needs briefly inside to start an exec. */
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

  /** Undefined after the container and its group have ended. */
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

  /** Status of an exec after its output has ended. Undefined if Docker no longer knows the exec. */
  async statusOf(execId: string): Promise<number | undefined> {
    for (let tries = 0; tries < 500; tries++) {
      const state = (await this.#client.call("GET", `/exec/${execId}/json`, { expect: [404, 409] })) as
        | { Running: boolean; ExitCode: number | null; Pid: number }
        | undefined;
      if (state === undefined) return undefined;
      // Docker reports its own failure to start a process as status 126, with text on stdout.
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

  /** True if process 1 is exiting or gone. Nothing inside can cause this: signals from inside do not reach it. */
  isEnding(): boolean {
    return isEnding(this.#pid);
  }

  /** True if only process 1 runs and /tmp is empty. The host checks this, so the task cannot deceive it.
   *  False if the host may not look (not root). */
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

/** Process 1 is root without any capability: the task, as another user, can neither signal it nor read its memory. */
function settings({ image, taskDirectory, limits }: ContainerSpec): unknown {
  return {
    Image: image,
    Cmd: ["tail", "-f", "/dev/null"],
    Env: Object.entries(CLEAN_ENV).map(([key, value]) => `${key}=${value}`),
    User: "0:0",
    WorkingDir: "/",
    Hostname: "sandbox",
    NetworkDisabled: true,
    // No process inside needs a graceful stop, and process 1 would ignore the signal.
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
        // Docker mounts a message queue file system that is writable for everyone. Files there would outlive the task.
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
