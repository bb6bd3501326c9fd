/** Processes that are restarted when they end, as by a cluster's supervisor. In: a program and its arguments. Out:
 *  handles to kill and stop them. Ends only the processes that it started. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, existsSync, mkdirSync, openSync } from "node:fs";
import { connect, createServer } from "node:net";
import { delimiter, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";

const RESTART_MS = 500;
const STOP_MS = 15_000;

/** A server program on the PATH, or in the folder where the project's set-up builds it. */
export function findServer(program, module) {
  const built = fileURLToPath(new URL(`../../.cache/servers/${program}`, import.meta.url));
  const folders = (process.env.PATH ?? "").split(delimiter);
  const found = [built, ...folders.map((folder) => join(folder, program))].find((path) => existsSync(path));
  if (found !== undefined) return found;
  throw new Error(`${program} is not on the PATH. Install it: go install ${module}`);
}

const started = [];

/** Stops the last started first, and processes of one kind together: workers, then gateways, then servers. */
export async function stopAll() {
  const kindOf = ({ name }) => name.split("-")[0];
  while (started.length > 0) {
    const from = started.findLastIndex((each) => kindOf(each) !== kindOf(started.at(-1))) + 1;
    await Promise.all(started.splice(from).map((each) => each.stop()));
  }
}

/** Runs until `stop`, or until the process ends with 0. Its output is in a file: `log`. */
export class Supervised {
  #child;
  #isStopped = false;
  #isRunning = true;
  #ended;

  constructor({ name, folder, program, words, env = {}, onLine }) {
    this.name = name;
    this.log = join(folder, `${name}.log`);
    mkdirSync(folder, { recursive: true });
    this.#ended = this.#run({ program, words, env, onLine }).finally(() => {
      this.#isRunning = false;
    });
    started.push(this);
  }

  get pid() {
    return this.#child?.pid;
  }

  /** Resolves when the process has ended with 0 or was stopped. */
  get ended() {
    return this.#ended;
  }

  get isRunning() {
    return this.#isRunning;
  }

  /** Kills the process with SIGKILL; it is restarted. */
  async strike() {
    const child = this.#child;
    if (child === undefined) return;
    const gone = once(child, "exit");
    child.kill("SIGKILL");
    await gone;
  }

  async stop() {
    this.#isStopped = true;
    this.#child?.kill("SIGTERM");
    const late = setTimeout(() => this.#child?.kill("SIGKILL"), STOP_MS);
    await this.#ended;
    clearTimeout(late);
  }

  async #run({ program, words, env, onLine }) {
    while (!this.#isStopped) {
      const log = openSync(this.log, "a");
      const child = spawn(program, words, {
        env: { ...process.env, ...env },
        stdio: ["ignore", onLine === undefined ? log : "pipe", log],
      });
      closeSync(log);
      this.#child = child;
      if (onLine !== undefined) readLines(child.stdout, onLine);
      const [code] = await once(child, "close");
      this.#child = undefined;
      if (code === 0 || this.#isStopped) return;
      await sleep(RESTART_MS);
    }
  }
}

/** Whole lines only: a line that a kill cut off was not received. */
function readLines(stream, onLine) {
  let rest = "";
  stream.setEncoding("utf8").on("data", (text) => {
    const lines = (rest + text).split("\n");
    rest = lines.pop();
    for (const line of lines) onLine(line);
  });
}

export async function freePorts(count) {
  const servers = await Promise.all(
    Array.from({ length: count }, async () => {
      const server = createServer().listen(0, "127.0.0.1");
      await once(server, "listening");
      return server;
    }),
  );
  const ports = servers.map((server) => server.address().port);
  await Promise.all(servers.map((server) => once(server.close(), "close")));
  return ports;
}

export async function listening(port, { name, withinMs = 30_000 }) {
  const end = performance.now() + withinMs;
  while (!(await isOpen(port))) {
    if (performance.now() > end) throw new Error(`${name} does not listen on port ${port}`);
    await sleep(50);
  }
}

function isOpen(port) {
  return new Promise((done) => {
    const socket = connect(port, "127.0.0.1", () => {
      socket.destroy();
      done(true);
    });
    socket.once("error", () => done(false));
  });
}
