import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { describe, expect, it, onTestFinished } from "vitest";
import { manualClock, systemClock } from "../../src/base/clock.ts";
import { digestJson } from "../../src/base/digest.ts";
import { parseId } from "../../src/base/ids.ts";
import { Journal } from "../../src/collect/gateway/journal/journal.ts";
import { singleOpening } from "../../src/collect/gateway/rollouts/opening.ts";
import {
  SealQueue,
  type SealQueueOptions,
  startSealWorker,
  type ToSeal,
} from "../../src/collect/gateway/sealing/seal-queue.ts";
import { KeptThread } from "../../src/collect/kept-thread.ts";
import type { Admission } from "../../src/collect/receipt.ts";
import { newKeyPem, openRecord, RolloutEnvelope, signerFromPem } from "../../src/contract/index.ts";
import { verifyBook } from "../../src/keep/verify/index.ts";
import { openBook } from "../../src/store/index.ts";
import { TestGateway, TOKEN } from "../support/gateway.ts";
import { chatReply, json } from "../support/scripted-upstream.ts";

const signer = signerFromPem(newKeyPem());
const gatewayName = parseId("gateway");
const rollouts = { idleMs: 1, environment: "gateway@1", dataSource: "real" } as const;
const request = Buffer.from('{"model":"m","messages":[{"role":"user","content":"Hi"}]}');
const reply = Buffer.from(
  '{"choices":[{"index":0,"message":{"role":"assistant","content":"ok"},"finish_reason":"stop"}]}',
);

/** A journal with rollouts of one call, and a seal queue on it. */
async function opened(options: Partial<SealQueueOptions> = {}) {
  const root = mkdtempSync(join(tmpdir(), "rollbook-sealing-"));
  await (await openBook(root, { clock: systemClock })).close();
  const directory = join(root, "journal");
  const journal = Journal.open(directory, { event() {}, called() {} });
  const threads: Worker[] = [];
  const logs: string[] = [];
  /** A new queue on the same journal, after the previous queue is closed. */
  const next = () =>
    new SealQueue({
      ...{ root, journal, directory, gatewayName, signer, clock: manualClock(1000), readMs: 60_000 },
      log: (line) => logs.push(line),
      start: (root) => {
        const thread = startSealWorker(root);
        threads.push(thread);
        return thread;
      },
      ...options,
    });
  const sealing = next();
  onTestFinished(async () => {
    await sealing.close();
    await journal.close();
    rmSync(root, { recursive: true });
  });
  let made = 0;
  const rollout = async (): Promise<ToSeal> => {
    const id = parseId(`r-${made++}`);
    const event = journal.event(id, singleOpening(id, {}, { rollouts, gatewayName, atMs: 5 }));
    const place = journal.called(
      {
        ...{
          index: 0,
          earlier: 0,
          dialect: "openai-chat",
          status: 200,
          outcome: "answered",
          decided: [],
          deliveries: [],
        },
        ...{ startedAtMs: 6, durationMs: 2 },
      },
      { rollout: Buffer.from(id), target: Buffer.from(JSON.stringify({ model: "m" })) },
      { requestForm: "body", request, replyForm: "json", reply: [reply], media: [] },
    );
    await journal.flush();
    const numbers = ({ segment, offset, bytes }: typeof place) => [segment, offset, bytes];
    const places = { events: numbers(event), calls: [0, ...numbers(place)] };
    const task = { ...places, isUrgent: false, marks: [], capped: undefined, endedAtMs: 9 };
    return { task, onJournaled: () => {} };
  };
  return { root, sealing, next, threads, logs, rollout };
}

/** Trust facts of the book's artifacts, after a check that the book verifies. */
async function trustOf(root: string) {
  const book = await openBook(root, { clock: systemClock, mode: "read" });
  const { problems, trust } = await verifyBook(book, { trustedKeys: [signer.publicKey] } as never);
  await book.close();
  expect(problems).toEqual([]);
  return trust;
}

describe("the sealing", () => {
  it("seals and signs in a thread, which comes with the first rollout and goes at the end", async () => {
    const { root, sealing, threads, rollout } = await opened();
    expect(threads).toEqual([]);
    const tasks = await Promise.all(Array.from({ length: 5 }, rollout));
    const reports = Promise.all(tasks.map((task) => sealing.seal(task)));
    expect(sealing.waiting).toBe(5);
    for (const report of await reports)
      expect(report).toMatchObject({ ending: { kind: "terminal" }, drifts: { CLEAN: 1 } });
    expect(sealing.waiting).toBe(0);
    await sealing.close();
    expect(threads.map(({ threadId }) => threadId)).toEqual([-1]);
    expect(await trustOf(root)).toMatchObject({ artifacts: 5, trusted: 5 });
  });

  it("leaves a kept thread to the next sealing, with the book closed, and starts one if that has ended", async () => {
    const keptThread = new KeptThread();
    onTestFinished(() => keptThread.close());
    const { root, sealing, next, threads, rollout } = await opened({ keptThread });
    const first = await sealing.seal(await rollout());
    await sealing.close();
    expect(await trustOf(root)).toMatchObject({ artifacts: 1, trusted: 1 });
    const second = next();
    expect((await second.seal(await rollout())).envelope).not.toBe(first.envelope);
    await second.close();
    expect(threads).toHaveLength(1);
    expect(keptThread.take("another book")).toBeUndefined();
    await threads[0]!.terminate();
    const third = next();
    await third.seal(await rollout());
    await third.close();
    expect(threads).toHaveLength(2);
    await keptThread.close();
    expect(threads.map(({ threadId }) => threadId)).toEqual([-1, -1]);
    expect(await trustOf(root)).toMatchObject({ artifacts: 3, trusted: 3 });
  });

  it("goes on in another thread when one dies, and every artifact is there once", async () => {
    let judged = () => {};
    const asked = new Promise<void>((done) => {
      judged = done;
    });
    let die = true;
    const { root, sealing, threads, logs, rollout } = await opened({
      admit: async () => {
        judged();
        if (die) await new Promise(() => {});
        return { outcome: "stored", signals: [], message: "kept" };
      },
    });
    const tasks = await Promise.all(Array.from({ length: 3 }, rollout));
    const reports = tasks.map((task) => sealing.seal(task));
    await asked;
    die = false;
    await threads[0]!.terminate();
    expect(new Set((await Promise.all(reports)).map(({ content }) => content)).size).toBe(3);
    expect(threads).toHaveLength(2);
    expect(logs.join()).toContain("the sealing thread died (it ended); 3 rollouts are tried again");
    await sealing.close();
    expect(await trustOf(root)).toMatchObject({ artifacts: 3, trusted: 3 });
  });

  it("loses nothing and seals nothing twice when threads end in the middle of their commits", async () => {
    const { root, sealing, threads, rollout } = await opened();
    const tasks = await Promise.all(Array.from({ length: 300 }, rollout));
    let done = 0;
    const reports = tasks.map(async (task) => {
      const report = await sealing.seal(task);
      if (++done === 1 || done === 150) void threads.at(-1)!.terminate();
      return report.envelope;
    });
    const envelopes = new Set(await Promise.all(reports));
    expect([envelopes.size, threads.length]).toEqual([300, 3]);
    await sealing.close();
    expect(await trustOf(root)).toMatchObject({ artifacts: 300, trusted: 300 });
  });

  it("says what is wrong with one rollout, and seals the others", async () => {
    const { sealing, threads, rollout } = await opened();
    const [good, bad] = [await rollout(), await rollout()];
    const [segment, offset, bytes] = bad.task.events as [number, number, number];
    const wrong = sealing.seal({ ...bad, task: { ...bad.task, events: [segment, offset + 1, bytes] } });
    await expect(wrong).rejects.toMatchObject({ code: "damaged-log" });
    await expect(sealing.seal(good)).resolves.toMatchObject({ ending: { kind: "terminal" } });
    expect(threads).toHaveLength(1);
  });

  it("passes on what the judge and the signer refuse", async () => {
    const refuse = () => {
      throw new Error("not today");
    };
    const unjudged = await opened({ admit: refuse });
    await expect(unjudged.sealing.seal(await unjudged.rollout())).rejects.toThrow("not today");
    const unsigned = await opened({ signer: { ...signer, signAside: refuse } });
    await expect(unsigned.sealing.seal(await unsigned.rollout())).rejects.toThrow("not today");
  });

  it("gives up after threads that die at once, says so, and works again when it can", async () => {
    let deaths = 0;
    const { root, sealing, rollout } = await opened({ onDeath: () => deaths++ });
    const packs = join(root, "packs");
    renameSync(packs, `${packs}-away`);
    writeFileSync(packs, "");
    const first = sealing.seal(await rollout());
    await expect(first).rejects.toMatchObject({ code: "sealing-died" });
    expect([deaths, sealing.isWorking]).toEqual([3, true]);
    await expect(sealing.seal(await rollout())).rejects.toMatchObject({ code: "sealing-died" });
    expect([deaths, sealing.isWorking, sealing.waiting]).toEqual([5, false, 0]);
    const task = await rollout();
    await expect(sealing.seal(task)).rejects.toMatchObject({ code: "sealing-broken" });
    rmSync(packs);
    mkdirSync(packs);
    const sealed = () => sealing.seal(task).then(() => "sealed", String);
    await expect.poll(sealed, { timeout: 10_000, interval: 200 }).toBe("sealed");
    expect(sealing.isWorking).toBe(true);
  });

  it("that is closed refuses what it has not sealed, and starts no thread for it", async () => {
    const { sealing, threads, rollout } = await opened();
    const waiting = sealing.seal(await rollout());
    const refused = expect(waiting).rejects.toMatchObject({ code: "sealing-closed" });
    await sealing.close();
    await refused;
    await expect(sealing.seal(await rollout())).rejects.toMatchObject({ code: "sealing-closed" });
    expect([threads.length, sealing.waiting]).toEqual([0, 0]);
  });

  it("that is closed in the pause after a death starts no thread when that is over", async () => {
    let died = () => {};
    const death = new Promise<void>((done) => {
      died = done;
    });
    const { sealing, threads, rollout } = await opened({ onDeath: () => died() });
    await sealing.seal(await rollout());
    await threads[0]!.terminate();
    await death;
    const waiting = expect(sealing.seal(await rollout())).rejects.toMatchObject({ code: "sealing-closed" });
    await sealing.close();
    await waiting;
    await new Promise((done) => setTimeout(done, 150));
    expect(threads).toHaveLength(1);
  });

  it("has those first that somebody waits for", async () => {
    const { sealing, rollout } = await opened();
    const order: string[] = [];
    const tasks = await Promise.all(Array.from({ length: 400 }, rollout));
    const others = tasks.slice(1).map(async (task, i) => {
      await sealing.seal(task);
      order.push(`other ${i}`);
    });
    const urgent = sealing
      .seal({ ...tasks[0]!, task: { ...tasks[0]!.task, isUrgent: true } })
      .then(() => order.push("urgent"));
    await Promise.all([urgent, ...others]);
    expect(order.indexOf("urgent")).toBeLessThan(256);
  });
});

describe("a look into the book", () => {
  const NOWHERE = digestJson("test.nowhere.v1", "nobody has it");

  it("that a dying thread takes along is refused, and the next one is answered by the next thread", async () => {
    const threads: Worker[] = [];
    const { sealing, root } = await opened({
      start: (root) => {
        const mute = () => new Worker("setInterval(() => {}, 1000)", { eval: true });
        const thread = threads.length === 0 ? mute() : startSealWorker(root);
        threads.push(thread);
        return thread;
      },
    });
    const lost = sealing.look([NOWHERE]);
    void threads[0]!.terminate();
    await expect(lost).rejects.toMatchObject({ code: "sealing-died" });
    const book = await openBook(root, { clock: systemClock });
    const digest = book.put("test.kind", Uint8Array.of(1));
    await book.close();
    expect(await sealing.look([digest, NOWHERE])).toMatchObject([{ kind: "test.kind" }, null]);
    expect(threads).toHaveLength(2);
  });

  it("that waits when sealing is closed is refused", async () => {
    const { sealing } = await opened();
    await sealing.look([NOWHERE]);
    await sealing.close();
    await expect(sealing.look([NOWHERE])).rejects.toMatchObject({ code: "sealing-closed" });
  });
});

describe("a gateway", () => {
  const CHAT = "/v1/chat/completions";
  const ASK = { model: "tiny", messages: [{ role: "user", content: "Hi" }] };
  const metric = async (test: TestGateway, name: string) => {
    const response = await fetch(`${test.gateway.url}/metrics`, {
      headers: { authorization: `Bearer ${TOKEN}` },
    });
    return Number(new RegExp(`^${name} (.*)$`, "m").exec(await response.text())?.[1]);
  };

  it("refuses calls without a rollout while too many wait to be sealed, and takes those within one", async () => {
    let goOn: () => void = () => {};
    const held = new Promise<void>((done) => {
      goOn = done;
    });
    const admit = () => held.then((): Admission => ({ outcome: "stored", signals: [], message: "kept" }));
    const test = await TestGateway.open({ limits: { sealBacklog: 2 } }, { admit });
    test.upstream.otherwise = json(chatReply({ content: "ok" }));
    for (const _ of [1, 2]) expect((await test.post(CHAT, ASK)).status).toBe(200);
    const refused = await test.post(CHAT, ASK);
    expect([refused.status, refused.body.error.code]).toEqual([429, "seal-backlog"]);
    expect(refused.headers.get("x-should-retry")).toBeNull();
    await expect.poll(() => metric(test, "rollbook_gateway_seal_backlog")).toBe(2);
    const { apiKey } = await test.openRollout();
    expect((await test.post(CHAT, ASK, { authorization: `Bearer ${apiKey}` })).status).toBe(200);
    goOn();
    await expect.poll(() => test.post(CHAT, ASK).then(({ status }) => status), { timeout: 10_000 }).toBe(200);
  });

  it("counts single calls that cannot be sealed among those, tries them again, and takes calls when they are", async () => {
    let isAway = true;
    const admit = (): Admission => {
      if (isAway) throw new Error("no judge");
      return { outcome: "stored", signals: [], message: "kept" };
    };
    const test = await TestGateway.open({ limits: { sealBacklog: 3 } }, { admit });
    test.upstream.otherwise = json(chatReply({ content: "ok" }));
    for (const failures of [1, 2, 3]) {
      expect((await test.post(CHAT, ASK)).status).toBe(200);
      await expect.poll(() => metric(test, "rollbook_gateway_sealing_failures_total")).toBe(failures);
    }
    expect((await test.post(CHAT, ASK)).body.error.code).toBe("seal-backlog");
    expect(await metric(test, "rollbook_gateway_unsealed_singles")).toBe(3);
    // The gateway tries one rollout, not all of them.
    await expect(test.gateway.sealIdle()).rejects.toThrow("no judge");
    expect(await metric(test, "rollbook_gateway_sealing_failures_total")).toBe(4);
    await test.restart();
    expect((await test.post(CHAT, ASK)).body.error.code).toBe("seal-backlog");
    isAway = false;
    expect(await test.gateway.sealIdle()).toBe(0);
    expect(await metric(test, "rollbook_gateway_unsealed_singles")).toBe(0);
    expect((await test.post(CHAT, ASK)).status).toBe(200);
  });

  it("does not count single calls among the rollouts that somebody has to close", async () => {
    let goOn: () => void = () => {};
    const held = new Promise<void>((done) => {
      goOn = done;
    });
    const admit = () => held.then((): Admission => ({ outcome: "stored", signals: [], message: "kept" }));
    const test = await TestGateway.open({ limits: { openRollouts: 1 } }, { admit });
    test.upstream.otherwise = json(chatReply({ content: "ok" }));
    for (const _ of [1, 2]) expect((await test.post(CHAT, ASK)).status).toBe(200);
    expect((await test.post("/v1/rollouts")).status).toBe(201);
    const refused = await test.post("/v1/rollouts");
    expect([refused.status, refused.body.error.code]).toEqual([429, "too-many-rollouts"]);
    expect(refused.body.error.message).toContain("1 rollouts are open");
    goOn();
  });

  it("that is stopped seals what is closed before it ends", async () => {
    const test = await TestGateway.open();
    test.upstream.otherwise = json(chatReply({ content: "ok" }));
    const { id, apiKey } = await test.openRollout();
    await test.post(CHAT, ASK, { authorization: `Bearer ${apiKey}` });
    const calls = Array.from({ length: 20 }, () => test.post(CHAT, ASK));
    for (const { status } of await Promise.all(calls)) expect(status).toBe(200);
    // The client of the close may get no reply before the stop.
    const closing = test.post(`/v1/rollouts/${id}/close`).catch(() => undefined);
    await expect.poll(() => metric(test, "rollbook_gateway_seal_backlog")).not.toBe(0);
    await test.stop();
    await closing;
    const deliveries = [];
    const book = await openBook(test.root, { clock: systemClock, mode: "read" });
    for await (const item of book.scan())
      if (item.type === "blob" && item.kind === RolloutEnvelope.kind)
        deliveries.push(
          ...(openRecord(RolloutEnvelope, item.bytes).callTimes ?? []).map(({ delivery }) => delivery),
        );
    await book.close();
    expect(deliveries).toEqual(Array(21).fill("sent"));
    await test.start();
  });

  it("says by /healthz that sealing does not work, and counts it; rollouts stay open", async () => {
    const test = await TestGateway.open();
    test.upstream.otherwise = json(chatReply({ content: "ok" }));
    const { id, apiKey } = await test.openRollout();
    await test.post(CHAT, ASK, { authorization: `Bearer ${apiKey}` });
    const packs = join(test.root, "packs");
    renameSync(packs, `${packs}-away`);
    writeFileSync(packs, "");
    for (const _ of [1, 2]) expect((await test.post(`/v1/rollouts/${id}/close`)).status).toBe(503);
    const health = await fetch(`${test.gateway.url}/healthz`);
    expect([health.status, await health.json()]).toEqual([503, { ok: false, records: true, seals: false }]);
    expect(await metric(test, "rollbook_gateway_sealing_deaths_total")).toBe(5);
    expect(await metric(test, "rollbook_gateway_sealing_failures_total")).toBe(2);
    expect((await test.post(CHAT, ASK, { authorization: `Bearer ${apiKey}` })).status).toBe(200);
    rmSync(packs);
    renameSync(`${packs}-away`, packs);
    await test.restart();
    expect((await test.closed(id)).calls).toHaveLength(2);
  });
});
