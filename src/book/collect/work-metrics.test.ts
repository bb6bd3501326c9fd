import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { freePort } from "../../../test/support/free-port.ts";
import { newKeyPem, type PublicKey, signerFromPem } from "../../contract/index.ts";
import { launch } from "./launch.ts";
import { startWorker } from "./worker.ts";

const signer = signerFromPem(newKeyPem());
const identity = () => ({ signer, trusts: (key: PublicKey) => key === signer.publicKey });

function book(): string {
  const root = mkdtempSync(join(tmpdir(), "rollbook-metrics-"));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  return root;
}

const pageAt = async (port: number) => (await fetch(`http://127.0.0.1:${port}/metrics`)).text();

it("a launch and its worker serve what they have done, and nothing once they have ended", async () => {
  const [root, launchPort, workerPort] = [book(), await freePort(), await freePort()];
  let release = () => {};
  const held = new Promise<void>((done) => {
    release = done;
  });
  let begun = 0;
  const agent = async () => {
    begun++;
    await held;
    return 1;
  };
  const common = { book: root, agent, identity };
  const launched = launch([{ q: 1 }, { q: 2 }], { ...common, concurrency: 0, metrics: String(launchPort) });
  const results = (async () => {
    for await (const _ of launched);
  })();
  while ((await pageAt(launchPort).catch(() => "")).indexOf('rollbook_queue_items{state="waiting"} 2') < 0)
    await new Promise((next) => setTimeout(next, 20));
  const worker = startWorker({ ...common, metrics: `127.0.0.1:${workerPort}` });
  while (begun < 2) await new Promise((next) => setTimeout(next, 20));
  const [running, waiting] = [await pageAt(workerPort), await pageAt(launchPort)];
  expect(running).toContain("rollbook_worker_running 2\n");
  expect(running).toContain("# TYPE rollbook_worker_agent_seconds histogram");
  expect(waiting).toContain('rollbook_queue_items{state="claimed"} 2');
  expect(waiting).toContain('rollbook_launch_rollouts{state="total"} 2');
  release();
  await Promise.all([results, worker.ended]);
  await expect(pageAt(launchPort)).rejects.toThrow("fetch failed");
  await expect(pageAt(workerPort)).rejects.toThrow("fetch failed");
});

it("an address that is none, or is taken, ends a launch before a rollout begins", async () => {
  const port = await freePort();
  const { createServer } = await import("node:net");
  const taken = createServer().listen(port, "127.0.0.1");
  onTestFinished(() => void taken.close());
  let runs = 0;
  const start = (metrics: string) =>
    launch([{ q: 1 }], { book: book(), agent: () => ++runs, identity, metrics }).futures();
  await expect(start("nowhere:x")).rejects.toMatchObject({ code: "bad-address" });
  await expect(start(String(port))).rejects.toMatchObject({
    code: "cannot-listen",
    message: expect.stringContaining("--metrics"),
  });
  expect(runs).toBe(0);
});
