/** Our own Docker daemon with its own data, socket and process. Tests, benchmarks and campaigns neither need nor touch
 *  the machine's daemon. Needs root and dockerd. In: nothing. Out: socket path and stop(). */
import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { RollbookError } from "../../src/base/index.ts";
import { DockerClient } from "../../src/collect/sandbox/docker/client.ts";
import { tarOf } from "../../src/collect/sandbox/docker/image.ts";

export interface PrivateDaemon {
  readonly socketPath: string;
  readonly pid: number;
  stop(): Promise<void>;
}

const START_MS = 30_000;

export async function startPrivateDaemon(): Promise<PrivateDaemon> {
  const directory = mkdtempSync(join(tmpdir(), "rollbook-dockerd-"));
  const socketPath = join(directory, "d.sock");
  const log = openSync(join(directory, "log"), "w");
  const child = spawn("dockerd", daemonArgs(directory, socketPath), { stdio: ["ignore", log, log] });
  closeSync(log);
  try {
    await answers(child, socketPath);
  } catch (cause) {
    await stop(child, directory);
    throw cause;
  }
  return { socketPath, pid: child.pid!, stop: () => stop(child, directory) };
}

function daemonArgs(directory: string, socketPath: string): string[] {
  return [
    ...[
      "--data-root",
      join(directory, "root"),
      "--exec-root",
      join(directory, "exec"),
      "-p",
      join(directory, "d.pid"),
    ],
    ...["-H", `unix://${socketPath}`, "--storage-driver", "overlay2", "--log-level", "warn"],
    ...["--iptables=false", "--ip6tables=false", "--bridge=none", "--ip-forward=false"],
  ];
}

async function answers(child: ChildProcess, socketPath: string): Promise<void> {
  let failure: Error | undefined;
  child.once("error", (error) => {
    failure = error;
  });
  const client = new DockerClient(socketPath);
  const end = performance.now() + START_MS;
  try {
    for (;;) {
      if (failure !== undefined || child.exitCode !== null || performance.now() > end)
        throw notStarted(child, socketPath, failure);
      try {
        await client.call("GET", "/_ping");
        return;
      } catch (error) {
        if (!(error instanceof RollbookError)) throw error; // The daemon is not up yet: retry.
      }
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  } finally {
    client.close();
  }
}

async function stop(child: ChildProcess, directory: string): Promise<void> {
  if (child.exitCode === null && child.signalCode === null && child.pid !== undefined) {
    const ended = new Promise((resolve) => child.once("exit", resolve));
    child.kill("SIGTERM");
    const force = setTimeout(() => child.kill("SIGKILL"), 15_000);
    await ended;
    clearTimeout(force);
  }
  rmSync(directory, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
}

function notStarted(child: ChildProcess, socketPath: string, cause: unknown): RollbookError {
  let said = "";
  try {
    said = readFileSync(socketPath.replace(/d\.sock$/, "log"), "utf8").slice(-800);
  } catch {
    said = "no log was written";
  }
  return new RollbookError(
    "sandbox-daemon-failed",
    { exitCode: child.exitCode, said },
    `dockerd did not start (${said.trim()}). It needs root, and the package docker.io.`,
    { cause },
  );
}

/** Builds `folder`/Dockerfile on `base` without network, so the base must hold every file that the build needs. */
export async function buildImage(
  client: DockerClient,
  { folder, base, image }: { readonly folder: string; readonly base: string; readonly image: string },
): Promise<void> {
  const args = encodeURIComponent(JSON.stringify({ BASE: base }));
  const query = `t=${image}&buildargs=${args}&networkmode=none&rm=1&forcerm=1`;
  await client.upload(`/build?${query}`, tarOf(folder));
}
