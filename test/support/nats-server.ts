/** Our own NATS servers with JetStream, on free loopback ports, with their own folders: one, or a cluster of three. In:
 *  the number of nodes, and their requirements for clients. Out: a URL, and nodes that can be killed, stopped and
 *  started again. Ends only processes that it started. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { serverPath } from "../../scripts/servers.mjs";
import { freePort } from "./free-port.ts";

export interface NatsNode {
  readonly port: number;
  readonly pid: number | undefined;
  start(): Promise<void>;
  /** Resolves when the process is gone. */
  kill(signal?: "SIGKILL" | "SIGTERM"): Promise<void>;
  signal(signal: "SIGSTOP" | "SIGCONT"): void;
}

export interface NatsServers {
  /** For example 127.0.0.1:41234,127.0.0.1:41235. */
  readonly hosts: string;
  readonly nodes: readonly NatsNode[];
  stop(): Promise<void>;
}

export interface NatsServerOptions {
  readonly nodes?: 1 | 3;
  /** True if the server syncs each write to disk before it answers. */
  readonly syncAlways?: boolean;
  /** Lines for the configuration of every node, such as `authorization` and `tls`. */
  readonly config?: string;
}

const START_MS = 30_000;

export async function startNats(options: NatsServerOptions = {}): Promise<NatsServers> {
  const { nodes: count = 1 } = options;
  const folder = mkdtempSync(join(tmpdir(), "rollbook-nats-"));
  const ports = await Promise.all(Array.from({ length: 2 * count }, freePort));
  const [clients, routes] = [ports.slice(0, count), ports.slice(count)];
  const nodes = clients.map((port, i) => {
    const path = join(folder, `n${i}`);
    mkdirSync(path);
    writeFileSync(join(path, "nats.conf"), configOf(options, { i, port, path, routes }));
    return new Node(port, path);
  });
  const stop = async () => {
    await Promise.all(nodes.map((node) => node.kill()));
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    await Promise.all(nodes.map((node) => node.start()));
  } catch (error) {
    await stop();
    throw error;
  }
  return { hosts: clients.map((port) => `127.0.0.1:${port}`).join(","), nodes, stop };
}

class Node implements NatsNode {
  readonly port: number;
  readonly folder: string;
  #child: ChildProcess | undefined;

  constructor(port: number, folder: string) {
    this.port = port;
    this.folder = folder;
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  async start(): Promise<void> {
    if (this.#child !== undefined) return;
    const log = openSync(join(this.folder, "log"), "a");
    const child = spawn(serverPath("nats-server")!, ["-c", join(this.folder, "nats.conf")], {
      stdio: ["ignore", log, log],
    });
    closeSync(log);
    this.#child = child;
    const end = performance.now() + START_MS;
    while (!(await answers(this.port))) {
      if (child.exitCode !== null || performance.now() > end)
        throw new Error(
          `nats-server did not start: ${readFileSync(join(this.folder, "log"), "utf8").slice(-2000)}`,
        );
      await sleep(20);
    }
  }

  async kill(signal: "SIGKILL" | "SIGTERM" = "SIGKILL"): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, "exit");
    child.kill(signal);
    await ended;
  }

  signal(signal: "SIGSTOP" | "SIGCONT"): void {
    this.#child?.kill(signal);
  }
}

function configOf(
  { nodes = 1, syncAlways = false, config = "" }: NatsServerOptions,
  at: { i: number; port: number; path: string; routes: readonly number[] },
): string {
  const lines = [
    `server_name: "n${at.i}"`,
    `listen: "127.0.0.1:${at.port}"`,
    `jetstream { store_dir: "${join(at.path, "data")}", max_memory_store: 256MB, max_file_store: 8GB${
      syncAlways ? ", sync_interval: always" : ""
    } }`,
    config,
  ];
  if (nodes > 1)
    lines.push(
      `cluster { name: "test", listen: "127.0.0.1:${at.routes[at.i]}", routes: [${at.routes
        .map((port) => `"nats://127.0.0.1:${port}"`)
        .join(", ")}] }`,
    );
  return `${lines.join("\n")}\n`;
}

/** True if a server listens at the port: it sends INFO at once. */
function answers(port: number): Promise<boolean> {
  return new Promise((done) => {
    const socket = connect(port, "127.0.0.1");
    const end = (answer: boolean) => {
      socket.destroy();
      done(answer);
    };
    socket.once("data", () => end(true));
    socket.once("error", () => end(false));
    socket.setTimeout(500, () => end(false));
  });
}
