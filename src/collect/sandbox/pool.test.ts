import { describe, expect, it } from "vitest";
import { RollbookError } from "../../base/errors.ts";
import { openPool } from "./pool.ts";
import type { ExecResult, SandboxEngine, SandboxTask, Slot } from "./sandbox.ts";

const RESULT: ExecResult = {
  ...{ exitCode: 0, signal: null, stdout: new Uint8Array(), stderr: new Uint8Array() },
  ...{
    truncated: { stdout: false, stderr: false },
    timedOut: false,
    outOfMemory: false,
    pidsExceeded: false,
  },
  ...{ outputExceeded: false, files: {}, usage: { wallMs: 0, cpuMs: null, peakMemoryBytes: null } },
};

/** An engine with slots that obey the task's first argument and count themselves. */
class ScriptedEngine implements SandboxEngine {
  readonly name = "quickjs";
  readonly runs = new Set(["command"] as const);
  readonly covers = new Set<never>();
  open = 0;
  opened = 0;
  running = 0;
  most = 0;
  refuseToOpen = false;
  /** Each slot opens after this promise. */
  ready = Promise.resolve();
  openAtClose: number | undefined;

  async openSlot(): Promise<Slot> {
    if (this.refuseToOpen) throw new RollbookError("sandbox-engine-missing", {}, "gone");
    await this.ready;
    this.open++;
    this.opened++;
    let isOpen = true;
    const close = async () => {
      if (isOpen) this.open--;
      isOpen = false;
    };
    return { exec: (task) => this.#exec(task), close };
  }

  async close(): Promise<void> {
    this.openAtClose = this.open;
  }

  async #exec({ program }: SandboxTask): Promise<ExecResult> {
    this.most = Math.max(this.most, ++this.running);
    await new Promise((resolve) => setTimeout(resolve, 2));
    this.running--;
    if (program.kind === "command" && program.argv[0] === "die")
      throw new RollbookError("sandbox-engine-died", {}, "died");
    return RESULT;
  }
}

const command = (...argv: string[]) => ({ kind: "command", argv }) as const;

describe("the pool", () => {
  it("runs no more tasks at a time than it has slots, and all of them", async () => {
    const engine = new ScriptedEngine();
    const pool = await openPool(engine, 3);
    const results = await Promise.all(Array.from({ length: 20 }, () => pool.exec(command("ok"))));
    expect([results.length, engine.most, engine.opened]).toEqual([20, 3, 3]);
    await pool.close();
    expect(engine.open).toBe(0);
  });

  it("a slot that dies gives its task a typed error, is replaced, and disturbs no other task", async () => {
    const engine = new ScriptedEngine();
    const pool = await openPool(engine, 2);
    const ends = await Promise.allSettled(
      Array.from({ length: 12 }, (_, i) => pool.exec(command(i % 4 === 0 ? "die" : "ok"))),
    );
    expect(ends.filter(({ status }) => status === "fulfilled")).toHaveLength(9);
    for (const end of ends)
      if (end.status === "rejected") expect(end.reason).toMatchObject({ code: "sandbox-engine-died" });
    expect([engine.opened, engine.open]).toEqual([5, 2]);
    await pool.close();
  });

  it("when no slot can be opened again, those who wait are told, and it recovers with the engine", async () => {
    const engine = new ScriptedEngine();
    const pool = await openPool(engine, 1);
    engine.refuseToOpen = true;
    const ends = await Promise.allSettled([pool.exec(command("die")), pool.exec(command("ok"))]);
    expect(ends.map((end) => end.status === "rejected" && end.reason.code)).toEqual([
      "sandbox-engine-died",
      "sandbox-engine-missing",
    ]);
    engine.refuseToOpen = false;
    expect(await pool.exec(command("ok"))).toBe(RESULT);
    await pool.close();
  });

  it("has all its slots again after an engine that refused while other slots were busy", async () => {
    const engine = new ScriptedEngine();
    const pool = await openPool(engine, 3);
    engine.refuseToOpen = true;
    const first = await Promise.allSettled(["die", "ok", "ok", "ok"].map((word) => pool.exec(command(word))));
    expect(first.map(({ status }) => status)).toEqual(["rejected", "fulfilled", "fulfilled", "fulfilled"]);
    expect(engine.open).toBe(2);
    engine.refuseToOpen = false;
    engine.most = 0;
    const tasks = () => Promise.all(Array.from({ length: 20 }, () => pool.exec(command("ok"))));
    await tasks();
    expect([engine.most, engine.open, engine.opened]).toEqual([3, 3, 4]);
    await pool.close();
    expect(engine.open).toBe(0);
  });

  it("opens no more slots than it has, also for tasks that come at once after all were lost", async () => {
    const engine = new ScriptedEngine();
    const pool = await openPool(engine, 2);
    engine.refuseToOpen = true;
    await Promise.allSettled([pool.exec(command("die")), pool.exec(command("die"))]);
    expect(engine.open).toBe(0);
    engine.refuseToOpen = false;
    await Promise.all(Array.from({ length: 6 }, () => pool.exec(command("ok"))));
    expect([engine.most, engine.open]).toEqual([2, 2]);
    await pool.close();
    expect(engine.open).toBe(0);
  });

  it("closes its engine after a slot that was opening", async () => {
    const engine = new ScriptedEngine();
    const pool = await openPool(engine, 1);
    let finish = () => {};
    engine.ready = new Promise((resolve) => {
      finish = resolve;
    });
    const died = expect(pool.exec(command("die"))).rejects.toMatchObject({ code: "sandbox-closed" });
    await new Promise((resolve) => setTimeout(resolve, 20));
    const closing = pool.close();
    await new Promise((resolve) => setTimeout(resolve, 5));
    expect(engine.openAtClose).toBeUndefined();
    finish();
    await Promise.all([closing, died]);
    expect([engine.opened, engine.openAtClose, engine.open]).toEqual([2, 0, 0]);
  });

  it("once closed, refuses tasks that wait and tasks that come", async () => {
    const pool = await openPool(new ScriptedEngine(), 1);
    const running = pool.exec(command("ok"));
    const waiting = expect(pool.exec(command("ok"))).rejects.toMatchObject({ code: "sandbox-closed" });
    await pool.close();
    await waiting;
    await expect(pool.exec(command("ok"))).rejects.toMatchObject({ code: "sandbox-closed" });
    await running;
  });
});
