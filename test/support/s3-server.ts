/** An S3 server of our own on a free loopback port, empty, with one bucket: versitygw where it is built and
 *  ROLLBOOK_S3_SERVER is not moto, else moto.
 *  Out: the environment for the official client. Ends only what it started, by process. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { CreateBucketCommand, S3Client } from "@aws-sdk/client-s3";
import { python } from "../../scripts/python.mjs";

export interface S3Server {
  readonly bucket: string;
  readonly endpoint: string;
  readonly kind: "versitygw" | "moto";
  readonly env: Readonly<Record<string, string>>;
  /** The process itself, for faults. */
  readonly process: ChildProcess;
  stop(): Promise<void>;
}

const BUILT = new URL("../../.cache/servers/versitygw", import.meta.url).pathname;
const KEY = { accessKeyId: "rollbooktest", secretAccessKey: "rollbooktestsecret" };
const START_MS = 60_000;

export async function startS3(bucket = "runs"): Promise<S3Server> {
  const folder = mkdtempSync(join(tmpdir(), "rollbook-s3-"));
  mkdirSync(join(folder, "data"));
  const port = await freePort();
  const kind = existsSync(BUILT) && process.env.ROLLBOOK_S3_SERVER !== "moto" ? "versitygw" : "moto";
  const child = kind === "versitygw" ? startVersity(port, join(folder, "data")) : startMoto(port);
  const endpoint = `http://127.0.0.1:${port}`;
  const stop = async () => {
    if (child.exitCode === null && child.signalCode === null) {
      const ended = once(child, "exit");
      child.kill("SIGKILL");
      await ended;
    }
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
  return { bucket, endpoint, kind, env, process: child, stop };
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
  return spawn(BUILT, args, { stdio: "ignore" });
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

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const { port } = server.address() as { port: number };
  await new Promise((done) => server.close(done));
  return port;
}
