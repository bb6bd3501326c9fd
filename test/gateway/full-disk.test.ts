import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface, type Interface } from "node:readline";
import { fileURLToPath } from "node:url";
import { expect, it, onTestFinished } from "vitest";
import * as requirement from "../../scripts/setup/sandbox.mjs";
import { describeNeeding } from "../support/needs.ts";

const CHAT = "/v1/chat/completions";
const DISK_BYTES = 16 * 1024 * 1024;
/** More bytes than the journal allocates ahead of its entries. */
const LONG = "x".repeat(3 * 1024 * 1024);

/** A gateway on a file system of 16 MiB. */
class SmallDisk {
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #lines: Interface;
  readonly #ended: Promise<unknown>;
  url = "";
  log = "";

  constructor() {
    const directory = mkdtempSync(join(tmpdir(), "rollbook-disk-"));
    const script = fileURLToPath(new URL("../support/gateway-on-disk.ts", import.meta.url));
    const own = ["--dev-bind", "/", "/", "--size", String(DISK_BYTES), "--tmpfs", directory];
    const node = [process.execPath, "--import", "tsx", script, directory];
    this.#child = spawn("bwrap", [...own, "--die-with-parent", "--", ...node]);
    this.#child.stderr.on("data", (text: Buffer) => {
      this.log += text.toString();
    });
    this.#lines = createInterface(this.#child.stdout);
    this.#ended = once(this.#child, "exit");
    onTestFinished(async () => {
      this.#child.kill("SIGKILL");
      await this.#ended;
      rmSync(directory, { recursive: true });
    });
  }

  // biome-ignore lint/suspicious/noExplicitAny: answers of every shape
  async tell(command: "start" | "stop" | "fill" | "free"): Promise<any> {
    this.#child.stdin.write(`${command}\n`);
    const line = once(this.#lines, "line").then(([text]) => text as string);
    const answer = await Promise.race([line, this.#ended.then(() => undefined)]);
    if (answer === undefined) throw new Error(`the gateway has ended: ${this.log}`);
    return JSON.parse(answer);
  }

  async start(): Promise<string[]> {
    const { url, recovered, error } = await this.tell("start");
    if (error !== undefined) throw new Error(error);
    this.url = url;
    return [...recovered].sort();
  }

  async post(path: string, body: object = {}) {
    const response = await fetch(this.url + path, { method: "POST", body: JSON.stringify(body) });
    // biome-ignore lint/suspicious/noExplicitAny: replies of every shape
    const value = (await response.json()) as any;
    return { status: response.status, body: value, code: value.error?.code };
  }

  call(rollout: string, content = "Hi") {
    return this.post(`/r/${rollout}${CHAT}`, { model: "m", messages: [{ role: "user", content }] });
  }

  async health() {
    const response = await fetch(`${this.url}/healthz`);
    return [response.status, await response.json()];
  }
}

await describeNeeding(requirement, "a full disk", () => {
  it("stops the journal: no reply is delivered, /healthz says so, and after a restart with room nothing is missing", async () => {
    const disk = new SmallDisk();
    await disk.start();
    for (const id of ["sealed", "a", "b"]) await disk.post("/v1/rollouts", { id });
    for (const id of ["sealed", "a", "a", "b"]) expect((await disk.call(id)).status).toBe(200);
    const report = (await disk.post("/v1/rollouts/sealed/close")).body;
    expect(await disk.health()).toEqual([200, { ok: true }]);
    expect((await disk.tell("fill")).bytes).toBeGreaterThan(0);

    await expect(disk.call("a", LONG)).rejects.toThrow();
    expect(disk.log).toMatch(/call a\.2 could not be recorded: .*ENOSPC/);
    expect(await disk.health()).toEqual([503, { ok: false, records: false, seals: true }]);
    expect(await disk.call("b")).toMatchObject({ status: 503, code: "cannot-record" });
    expect(await disk.post("/v1/rollouts", { id: "c" })).toMatchObject({
      status: 503,
      code: "cannot-record",
    });
    expect((await disk.tell("stop")).failures.join()).toContain("an earlier write to the journal failed");

    await disk.tell("free");
    expect(await disk.start()).toEqual(["a", "b"]);
    expect(await disk.health()).toEqual([200, { ok: true }]);
    expect((await disk.post("/v1/rollouts/sealed/close")).body).toEqual(report);
    expect((await disk.call("b")).status).toBe(200);
    expect((await disk.post("/v1/rollouts/a/close")).body).toMatchObject({ calls: 2 });
    expect((await disk.post("/v1/rollouts/b/close")).body).toMatchObject({ calls: 2 });
  });

  it("lets no rollout be sealed: it stays open, takes calls as long as the journal does, and is sealed when there is room", async () => {
    const disk = new SmallDisk();
    await disk.start();
    await disk.post("/v1/rollouts", { id: "a" });
    await disk.call("a", "a".repeat(100_000));
    await disk.tell("fill");

    const ending = { kind: "failed", owner: "agent", message: "gave up" };
    const close = { ending, scores: [{ name: "right", value: 0.5 }], finalState: { tries: 3 } };
    expect(await disk.post("/v1/rollouts/a/close", close)).toMatchObject({
      ...{ status: 503, code: "cannot-record" },
    });
    expect(disk.log).toMatch(/rollout a could not be sealed and stays open: .*ENOSPC/);
    // A call that fits into the journal is recorded, so its reply is delivered.
    expect((await disk.call("a")).status).toBe(200);

    await disk.tell("free");
    expect((await disk.post("/v1/rollouts/a/close", close)).body).toMatchObject({ calls: 2, ending });
    expect(await disk.health()).toEqual([200, { ok: true }]);
  });

  it("that cuts a sealing short has it done again at the next start, in the same words", async () => {
    const disk = new SmallDisk();
    await disk.start();
    for (const id of ["before", "a"]) {
      await disk.post("/v1/rollouts", { id });
      await disk.call(id, id.repeat(100_000));
    }
    // The pack is open from here on. Blobs put into it reach the disk only at the flush.
    expect((await disk.post("/v1/rollouts/before/close")).status).toBe(200);
    await disk.tell("fill");
    const ending = { kind: "failed", owner: "agent", message: "gave up" };
    const scores = [{ name: "right", value: 0.5 }];
    expect((await disk.post("/v1/rollouts/a/close", { ending, scores })).status).toBe(503);
    await disk.tell("stop");

    await disk.tell("free");
    expect(await disk.start()).toEqual([]);
    expect((await disk.post("/v1/rollouts/a/close")).body).toMatchObject({ calls: 1, ending });
    expect(await disk.health()).toEqual([200, { ok: true }]);
  });
});
