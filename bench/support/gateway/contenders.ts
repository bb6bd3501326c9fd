/** Starts the contenders of the gateway benchmark, each in its own process in front of one upstream. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { chatBody, PROMPT } from "./chat-request.ts";
import { Load } from "./load.ts";

export interface Contender {
  readonly name: string;
  readonly port: number;
  readonly pid: number;
  /** True if it seals rollouts. */
  readonly records: boolean;
  /** False if its streams do not work. */
  readonly streams: boolean;
  /** The next request to this contender. */
  request(kind: "whole" | "stream"): Buffer;
  with<T>(connections: number, kind: "whole" | "stream", run: (load: Load) => Promise<T>): Promise<T>;
}

const REPO = fileURLToPath(new URL("../../..", import.meta.url));
export const DIST = join(REPO, "dist");
const HERE = fileURLToPath(new URL(".", import.meta.url));
/** Rollouts that stay open during the run; the load generator spreads its requests over them. */
const ROLLOUTS = 500;
const PORTKEY = "@portkey-ai/gateway@1.15.2";

const REPLY = JSON.stringify({
  id: "chatcmpl-bench",
  object: "chat.completion",
  created: 1_700_000_000,
  model: "bench-model",
  choices: [
    {
      index: 0,
      message: {
        role: "assistant",
        content: "The quick brown fox jumps over the lazy dog. ".repeat(20).trim(),
      },
      finish_reason: "stop",
    },
  ],
  usage: { prompt_tokens: 120, completion_tokens: 200, total_tokens: 320 },
});

export async function openContenders(
  scratch: string,
  options: { portkey: boolean; against?: string | undefined },
): Promise<{ contenders: Contender[]; upstreamPid: number; close(): void }> {
  const children: ChildProcess[] = [];
  const start = (args: string[], env: NodeJS.ProcessEnv = {}) => {
    const child = spawn(process.execPath, args, {
      stdio: ["ignore", "pipe", "inherit"],
      env: { ...process.env, ...env },
    });
    children.push(child);
    return child;
  };
  const close = () => {
    for (const child of children) child.kill("SIGKILL");
  };
  try {
    writeFileSync(join(scratch, "reply.json"), REPLY);
    const model = start([join(HERE, "upstream.mjs"), join(scratch, "reply.json")]);
    const upstream = Number(await firstLine(model));
    const proxy = start([join(HERE, "passthrough.mjs"), String(upstream)]);
    const bare = { port: Number(await firstLine(proxy)), pid: proxy.pid! };
    // Every client sends a key; this key is as long as those of the gateways.
    const key = { authorization: `Bearer ${"k".repeat(41)}` };
    const plain = { whole: requestOf(key), stream: requestOf(key, true) };
    const logging = start([join(HERE, "logging-proxy.mjs"), String(upstream), join(scratch, "bare.log")]);
    const logged = { port: Number(await firstLine(logging)), pid: logging.pid! };
    const contenders = [
      contender("bare proxy", bare, (kind) => plain[kind]),
      contender("logging proxy", logged, (kind) => plain[kind]),
      await gateway("durable", { upstream, scratch, start, dist: DIST }),
      await gateway("async", { upstream, scratch, start, dist: DIST }),
    ];
    const { against: dist } = options;
    if (dist !== undefined)
      for (const record of ["durable", "async"] as const)
        contenders.push(await gateway(record, { upstream, scratch, start, dist, label: ` of ${dist}` }));
    const portkey = options.portkey ? await openPortkey(upstream, start) : undefined;
    const all = portkey === undefined ? contenders : [...contenders, portkey];
    return { contenders: all, upstreamPid: model.pid!, close };
  } catch (error) {
    close();
    throw error;
  }
}

export interface AskedGateway {
  readonly book: string;
  /** One contender per requested model, all in front of the same process. */
  readonly asked: Readonly<Record<string, Contender>>;
  /** Asks for one model after the other, request by request. */
  readonly inTurn: Contender;
}

/** Text of the calls: the same in all calls, or its own text in each rollout. */
export type Prompts = "one" | "many";

export interface GatewayToOpen {
  readonly label: string;
  readonly settings: string;
  readonly models: readonly string[];
  /** The build (default: this repository's). */
  readonly dist?: string;
  /** The folder of its signing key (default: the user's). */
  readonly home?: string;
}

/** Gateways in front of one upstream. They differ only in settings, build and key. */
export async function openGateways(
  scratch: string,
  gateways: readonly GatewayToOpen[],
  prompts: Prompts = "one",
): Promise<{ gateways: AskedGateway[]; close(): void }> {
  const children: ChildProcess[] = [];
  const start = (args: string[], env: NodeJS.ProcessEnv = {}) => {
    const child = spawn(process.execPath, args, {
      stdio: ["ignore", "pipe", "inherit"],
      env: { ...process.env, ...env },
    });
    children.push(child);
    return child;
  };
  const close = () => {
    for (const child of children) child.kill("SIGKILL");
  };
  try {
    writeFileSync(join(scratch, "reply.json"), REPLY);
    const upstream = Number(
      await firstLine(start([join(HERE, "upstream.mjs"), join(scratch, "reply.json")])),
    );
    const opened: AskedGateway[] = [];
    for (const { models, ...each } of gateways) {
      const at = await startGateway("durable", { upstream, scratch, start, dist: DIST, ...each });
      const asked = Object.fromEntries(models.map((model) => [model, askedFor(at, [model], prompts)]));
      opened.push({ book: at.book, asked, inTurn: askedFor(at, models, prompts) });
    }
    return { gateways: opened, close };
  } catch (error) {
    close();
    throw error;
  }
}

async function gateway(...at: Parameters<typeof startGateway>): Promise<Contender> {
  return askedFor(await startGateway(...at), ["bench-model"]);
}

interface StartedGateway {
  readonly name: string;
  readonly book: string;
  readonly port: number;
  readonly pid: number;
  /** Keys of its open rollouts. */
  readonly keys: readonly string[];
}

async function startGateway(
  record: "durable" | "async",
  {
    upstream,
    scratch,
    start,
    dist,
    label = "",
    settings = "defaultUpstream: up",
    home,
  }: {
    upstream: number;
    scratch: string;
    start: (args: string[], env?: NodeJS.ProcessEnv) => ChildProcess;
    /** The measured build. */
    dist: string;
    label?: string;
    /** Additional lines of its configuration. */
    settings?: string;
    home?: string;
  },
): Promise<StartedGateway> {
  const name = label === "" ? record : `${record}-${label.replaceAll(/[^a-z0-9]+/g, "-").slice(-40)}`;
  const config = join(scratch, `${name}.yaml`);
  const base = `http://127.0.0.1:${upstream}`;
  writeFileSync(
    config,
    `listen: { port: 0 }\nrecord: ${record}\nupstreams: { up: { baseUrl: "${base}" } }\n${settings}\n`,
  );
  const main = join(dist, "cli", "main.js");
  const book = join(scratch, name);
  const args = [main, "gateway", "--config", config, "--book", book];
  const child = start(args, home === undefined ? {} : { ROLLBOOK_HOME: home });
  const url = await firstLine(child);
  const keys: string[] = [];
  for (let i = 0; i < ROLLOUTS; i++) {
    const response = await fetch(`${url}/v1/rollouts`, { method: "POST", body: "{}" });
    keys.push(((await response.json()) as { apiKey: string }).apiKey);
  }
  return { name: record + label, book, port: Number(new URL(url).port), pid: child.pid!, keys };
}

function askedFor(
  { name, port, pid, keys }: StartedGateway,
  models: readonly string[],
  prompts: Prompts = "one",
): Contender {
  const of = (stream: boolean) =>
    keys.flatMap((key, i) =>
      models.map((model) => {
        const words = prompts === "one" ? PROMPT : `Question ${i}. ${PROMPT}`;
        return post("/v1/chat/completions", chatBody(stream, model, words), {
          authorization: `Bearer ${key}`,
        });
      }),
    );
  const requests = { whole: of(false), stream: of(true) };
  let next = 0;
  return contender(
    ...([name, { port, pid, records: true }] as const),
    (kind) => requests[kind][next++ % requests[kind].length]!,
  );
}

function contender(
  name: string,
  at: { port: number; pid: number; records?: boolean },
  request: (kind: "whole" | "stream") => Buffer,
  streams = true,
): Contender {
  return {
    name,
    records: false,
    ...at,
    streams,
    request,
    async with(connections, kind, run) {
      const load = new Load(at.port, () => request(kind));
      await load.open(connections);
      try {
        return await run(load);
      } finally {
        load.close();
      }
    },
  };
}

/** Installed into .cache, so that it is neither a dependency nor downloaded twice. */
async function openPortkey(
  upstream: number,
  start: (args: string[], env?: NodeJS.ProcessEnv) => ChildProcess,
): Promise<Contender | undefined> {
  const folder = join(REPO, ".cache", "portkey");
  const server = join(folder, "node_modules", "@portkey-ai", "gateway", "build", "start-server.js");
  if (!existsSync(server)) {
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, "package.json"), '{"private":true}');
    const npm = ["install", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error", PORTKEY];
    spawnSync("npm", npm, { cwd: folder, stdio: "ignore", timeout: 180_000 });
    if (!existsSync(server)) return undefined;
  }
  const port = await freePort();
  const env = { PORT: String(port), NODE_ENV: "production" };
  const { pid } = start([server, `--port=${port}`, "--headless"], env);
  const headers = {
    authorization: "Bearer none",
    "x-portkey-provider": "openai",
    "x-portkey-custom-host": `http://127.0.0.1:${upstream}/v1`,
  };
  const request = requestOf(headers);
  for (let tries = 0; tries < 100; tries++) {
    const isUp = await fetch(`http://127.0.0.1:${port}/v1/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: chatBody(false),
    }).then(
      (response) => response.ok,
      () => false,
    );
    // Its streams answer 500 with freshly resolved dependencies, so only whole replies are compared.
    if (isUp) return contender("portkey", { port, pid: pid! }, () => request, false);
    await new Promise((done) => setTimeout(done, 100));
  }
  return undefined;
}

export function requestOf(
  headers: Readonly<Record<string, string>>,
  stream = false,
  model = "bench-model",
): Buffer {
  return post("/v1/chat/completions", chatBody(stream, model), headers);
}

export function post(path: string, body: string, headers: Readonly<Record<string, string>> = {}): Buffer {
  const lines = Object.entries({
    host: "localhost",
    "content-type": "application/json",
    "content-length": String(Buffer.byteLength(body)),
    ...headers,
  }).map(([name, value]) => `${name}: ${value}\r\n`);
  return Buffer.from(`POST ${path} HTTP/1.1\r\n${lines.join("")}\r\n${body}`);
}

function firstLine(child: ChildProcess): Promise<string> {
  return new Promise((done, failed) => {
    let text = "";
    child.stdout!.setEncoding("utf8").on("data", (data: string) => {
      text += data;
      const end = text.indexOf("\n");
      if (end >= 0) done(text.slice(0, end));
    });
    child.once("exit", (code) => failed(new Error(`${child.spawnargs[1]} ended with ${code}`)));
  });
}

function freePort(): Promise<number> {
  return new Promise((done) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address() as { port: number };
      server.close(() => done(port));
    });
  });
}
