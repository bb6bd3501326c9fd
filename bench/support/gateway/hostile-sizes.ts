/** Requests and replies of a gigabyte through a gateway in its own process: its answers, their time, and its peak
 *  memory. The bytes are generated while they are sent; this process does not hold them. Linux. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import type { Writable } from "node:stream";
import type { Rng } from "../../../src/base/rng.ts";
import { MAIN, requireBuild } from "../build.ts";
import { HOSTILE_PATHS, type HostileDialect } from "./hostile.ts";

const GIGABYTE = 1e9;
/** Time limit of a trial, on a shared machine. */
const MOST_MS = 60_000;
/** By default a gateway accepts 64 MiB of a request and 256 MiB of a reply. */
const MOST_RSS = 1e9;
const DIALECTS = Object.keys(HOSTILE_PATHS) as HostileDialect[];

/** Texts that are sent repeatedly. */
const UNITS = {
  newlines: "\n".repeat(65_536),
  events: `data: {"choices":[{"index":0,"delta":{"content":"x"}}]}\n\n`.repeat(1000),
  "lines of one event": "data: x\n".repeat(8000),
  "one word": "x".repeat(65_536),
  brackets: "[".repeat(65_536),
  "tool calls":
    `data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":7,"function":{"arguments":"{"}}]}}]}\n\n`.repeat(
      600,
    ),
  zeros: "\0".repeat(65_536),
} as const;
type Unit = keyof typeof UNITS;

export interface SizeTrial {
  readonly what: "request" | "reply";
  readonly unit: Unit;
  readonly dialect: HostileDialect;
  readonly isStream: boolean;
  /** True if a content-length header announces its length. */
  readonly isTold: boolean;
}

export interface SizeReport {
  readonly faults: readonly string[];
  /** Peak memory of the gateway's process. */
  readonly peakBytes: number;
}

export function drawTrial(rng: Rng): SizeTrial {
  const pick = <T>(list: readonly T[]) => list[rng.below(list.length)]!;
  return {
    what: pick(["request", "reply"]),
    unit: pick(Object.keys(UNITS) as Unit[]),
    dialect: pick(DIALECTS),
    isStream: rng.below(2) === 1,
    isTold: rng.below(2) === 1,
  };
}

/** One trial after another on one gateway. After each trial, an ordinary call must be answered. */
export async function runSizeTrials(root: string, trials: readonly SizeTrial[]): Promise<SizeReport> {
  requireBuild();
  let current: SizeTrial | undefined;
  const upstream = createServer((asked, response) => {
    asked.resume();
    if (current?.what === "reply") void replyAtLength(response, current);
    else response.writeHead(200, { "content-type": "application/json" }).end(ORDINARY);
  }).listen(0, "127.0.0.1");
  await once(upstream, "listening");
  const { child, url } = await openGateway(root, (upstream.address() as AddressInfo).port);
  const faults: string[] = [];
  try {
    for (const [i, trial] of trials.entries()) {
      const startMs = performance.now();
      current = trial;
      const fault = await tryOne(url, trial, () => {
        current = undefined;
      });
      const ms = performance.now() - startMs;
      const told = `${i}: a ${trial.what} of ${trial.unit} (${trial.dialect}${trial.isStream ? ", stream" : ""}${trial.isTold ? ", length told" : ""})`;
      if (fault !== undefined) faults.push(`${told}: ${fault}`);
      if (ms > MOST_MS) faults.push(`${told}: took ${Math.round(ms)} ms`);
    }
    const peakBytes = peakOf(child.pid!);
    if (peakBytes > MOST_RSS) faults.push(`the gateway held ${Math.round(peakBytes / 1e6)} MB`);
    return { faults, peakBytes };
  } finally {
    child.kill("SIGKILL");
    upstream.closeAllConnections();
    upstream.close();
  }
}

const ORDINARY = JSON.stringify({ choices: [{ index: 0, message: { role: "assistant", content: "ok" } }] });
const ASKED = { model: "tiny", messages: [{ role: "user", content: "hi" }], prompt: "hi", input: "hi" };

/** Description of the fault; undefined if there is none. */
async function tryOne(url: string, trial: SizeTrial, over: () => void): Promise<string | undefined> {
  const post = (path: string, body: unknown) =>
    fetch(url + path, { method: "POST", body: JSON.stringify(body) }).then(async (response) => ({
      status: response.status,
      said: (await response.json()) as {
        id: string;
        calls?: number;
        ending?: { kind: string; owner?: string };
      },
    }));
  const { id } = (await post("/v1/rollouts", {})).said;
  const path = `/r/${id}${HOSTILE_PATHS[trial.dialect]}`;
  const answer =
    trial.what === "request" ? await askAtLength(url + path, trial) : await readReply(url + path, trial);
  over();
  const close = (name: string) => post(`/v1/rollouts/${name}/close`, {});
  const { status, said } = await close(id);
  if (status !== 200) return `close answered ${status}`;
  if (trial.what === "request") {
    if (answer !== 413 && answer !== 0)
      return `the answer was ${answer}, neither 413 nor a closed connection`;
    if (said.calls !== 0) return `a refused request counts as ${said.calls} calls`;
  } else if (said.ending?.kind !== "failed" || said.ending.owner !== "provider")
    return `the rollout ended as ${JSON.stringify(said.ending)}`;
  const next = (await post("/v1/rollouts", {})).said.id;
  const ordinary = await post(`/r/${next}/v1/chat/completions`, ASKED);
  const closed = await close(next);
  if (ordinary.status !== 200 || closed.said.calls !== 1)
    return `the next call was answered ${ordinary.status}`;
  return undefined;
}

/** The status; 0 if the connection was closed before a status arrived. A gateway does not read a refused body, so a
 *  client that continues to send may see the connection reset first. */
function askAtLength(url: string, { unit, isStream, isTold }: SizeTrial): Promise<number> {
  const length = isTold ? { "content-length": String(GIGABYTE) } : {};
  const head = `{"model":"tiny","stream":${isStream},"messages":[{"role":"user","content":"`;
  return new Promise((done) => {
    const sent = request(url, { method: "POST", headers: { "content-type": "application/json", ...length } });
    sent.on("response", (response: IncomingMessage) => {
      done(response.statusCode!);
      sent.destroy();
    });
    sent.on("error", () => done(0));
    sent.write(head);
    void writeAtLength(sent, UNITS[unit], GIGABYTE - head.length).then(() => sent.end());
  });
}

/** Reads the reply until it ends or fails. */
function readReply(url: string, { isStream }: SizeTrial): Promise<number> {
  return new Promise((done) => {
    const sent = request(url, { method: "POST", headers: { "content-type": "application/json" } });
    sent.on("response", (response: IncomingMessage) => {
      response.on("data", () => {});
      response.on("close", () => done(response.statusCode!));
      response.on("error", () => done(response.statusCode!));
    });
    sent.on("error", () => done(0));
    sent.end(JSON.stringify({ ...ASKED, stream: isStream }));
  });
}

async function replyAtLength(response: ServerResponse, { unit, isStream, isTold }: SizeTrial): Promise<void> {
  response.writeHead(200, {
    "content-type": isStream ? "text/event-stream" : "application/json",
    ...(isTold ? { "content-length": String(GIGABYTE) } : {}),
  });
  response.on("error", () => {});
  await writeAtLength(response, UNITS[unit], GIGABYTE);
  response.end();
}

/** Waits while the other side does not read; ends early if it has disconnected. */
async function writeAtLength(into: Writable, unit: string, bytes: number): Promise<void> {
  const block = Buffer.from(unit);
  for (let left = bytes; left > 0 && !into.destroyed; left -= block.length) {
    if (into.write(left < block.length ? block.subarray(0, left) : block)) continue;
    await new Promise<void>((done) => {
      const goOn = () => {
        into.off("drain", goOn).off("close", goOn);
        done();
      };
      into.on("drain", goOn).on("close", goOn);
    });
  }
}

async function openGateway(root: string, upstream: number): Promise<{ child: ChildProcess; url: string }> {
  const config = join(root, "gateway.yaml");
  const base = `http://127.0.0.1:${upstream}`;
  writeFileSync(
    config,
    [
      "listen: { port: 0 }",
      `upstreams: { up: { baseUrl: "${base}", retries: 0, breaker: { failures: 1000000 } } }`,
      "models: { tiny: { upstream: up } }",
      "",
    ].join("\n"),
  );
  const args = [MAIN, "gateway", "--config", config, "--book", join(root, "book")];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "ignore"] });
  const [first] = (await once(child.stdout!, "data")) as [Buffer];
  return { child, url: first.toString().split("\n")[0]! };
}

function peakOf(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, "latin1");
  return 1024 * Number(/VmHWM:\s+(\d+)/.exec(status)![1]);
}
