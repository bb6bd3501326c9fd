/** Our own S3 server on a free loopback port, empty, with one bucket. It is versitygw if that is built and
 *  ROLLBOOK_S3_SERVER is not moto, else moto. Out: the environment for the official client. Ends only processes that it
 *  started. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { CreateBucketCommand, S3Client } from "@aws-sdk/client-s3";
import { python } from "../../scripts/python.mjs";
import { serverPath } from "../../scripts/servers.mjs";
import { freePort } from "./free-port.ts";

export interface S3Server {
  readonly bucket: string;
  readonly endpoint: string;
  readonly kind: "versitygw" | "moto";
  readonly env: Readonly<Record<string, string>>;
  readonly port: number;
  /** The server process, for injecting faults. */
  readonly process: ChildProcess;
  /** Sends SIGKILL; resolves when the process is gone. versitygw has every acknowledged write on its disk; moto loses
   *  everything. */
  kill(): Promise<void>;
  /** Starts the server again on the same port with the same data. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

const BUILT = serverPath("versitygw");
const KEY = { accessKeyId: "rollbooktest", secretAccessKey: "rollbooktestsecret" };
const START_MS = 60_000;

export async function startS3(bucket = "runs"): Promise<S3Server> {
  const folder = mkdtempSync(join(tmpdir(), "rollbook-s3-"));
  mkdirSync(join(folder, "data"));
  const port = await freePort();
  const kind = BUILT !== undefined && process.env.ROLLBOOK_S3_SERVER !== "moto" ? "versitygw" : "moto";
  const start = () => (kind === "versitygw" ? startVersity(port, join(folder, "data")) : startMoto(port));
  let child = start();
  const kill = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, "exit");
    child.kill("SIGKILL");
    await ended;
  };
  const endpoint = `http://127.0.0.1:${port}`;
  const stop = async () => {
    await kill();
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    await makeBucket(endpoint, bucket);
  } catch (error) {
    await stop();
    throw error;
  }
  const env = {
    AWS_ENDPOINT_URL_S3: endpoint,
    AWS_REGION: "us-east-1",
    AWS_ACCESS_KEY_ID: KEY.accessKeyId,
    AWS_SECRET_ACCESS_KEY: KEY.secretAccessKey,
  };
  return {
    ...{ bucket, endpoint, port, kind, env, kill, stop },
    get process() {
      return child;
    },
    async restart() {
      child = start();
      await answers(endpoint);
    },
  };
}

async function answers(endpoint: string): Promise<void> {
  const until = Date.now() + START_MS;
  while (!(await fetch(endpoint).then(Boolean, () => false))) {
    if (Date.now() > until) throw new Error(`${endpoint} does not answer`);
    await sleep(50);
  }
}

function startVersity(port: number, data: string): ChildProcess {
  const args = [
    "--access",
    KEY.accessKeyId,
    "--secret",
    KEY.secretAccessKey,
    "--port",
    `127.0.0.1:${port}`,
    "posix",
    data,
  ];
  return spawn(BUILT!, args, { stdio: "ignore" });
}

function startMoto(port: number): ChildProcess {
  return spawn(python, ["-m", "moto.server", "-H", "127.0.0.1", "-p", String(port)], { stdio: "ignore" });
}

async function makeBucket(endpoint: string, Bucket: string): Promise<void> {
  const client = new S3Client({
    endpoint,
    region: "us-east-1",
    credentials: KEY,
    forcePathStyle: true,
    maxAttempts: 1,
  });
  const until = Date.now() + START_MS;
  for (;;) {
    try {
      await client.send(new CreateBucketCommand({ Bucket }));
      return;
    } catch (error) {
      if (Date.now() > until) throw error;
      await sleep(100);
    }
  }
}
