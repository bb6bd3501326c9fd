import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it, vi } from "vitest";
import { collect, launchWorld } from "../../../../test/support/launch-world.ts";
import { digestJson, manualClock, parseId, rngFrom, systemClock } from "../../../base/index.ts";
import {
  newKeyPem,
  openRecord,
  Receipt,
  RolloutContent,
  seal,
  sealMessage,
  signerFromPem,
} from "../../../contract/index.ts";
import { verifyBook } from "../../../keep/verify/index.ts";
import { openSqliteQueue } from "../../queue/sqlite-queue.ts";
import { functionAgent, type RolloutFunction } from "../agent/agent.ts";
import { failedBy } from "../agent/failure.ts";
import { bookRecorder } from "../record/recorder.ts";
import { openSealedIndex } from "../worker/sealed-index.ts";
import { startWorker } from "../worker/worker.ts";
import { makeWorkerServer } from "../worker/worker-protocol.ts";
import type { SealedResult } from "./result.ts";

const rows = (count: number) =>
  Array.from({ length: count }, (_, i) => ({ prompt: `p${i}`, metadata: { i } }));
const echo: RolloutFunction = ({ i }) => i as number;

describe("launch", () => {
  it("runs tasks × samples in groups, each once, with seeds of their own", async () => {
    const { start } = await launchWorld();
    const results = await collect(start(rows(3), (_, { seed }) => Number(seed % 1000n), { samples: 4 }));
    expect(results.length).toBe(12);
    expect(new Set(results.map(({ rolloutId }) => rolloutId)).size).toBe(12);
    expect(new Set(results.map(({ group }) => group)).size).toBe(3);
    expect(new Set(results.map((each) => (each.state === "sealed" ? each.reward : -1))).size).toBeGreaterThan(
      6,
    );
  });

  it("yields in completion order", async () => {
    const { start } = await launchWorld();
    const slowFirst: RolloutFunction = async ({ i }) => sleep(i === 0 ? 400 : 0, 1);
    const results = await collect(start(rows(3), slowFirst));
    expect(results.at(-1)?.row).toBe(0);
  });

  it("makes two assignments of a row that appears twice, and the same ids every time", async () => {
    const twice = [...rows(1), ...rows(1)];
    const [first, second] = [await launchWorld(), await launchWorld()];
    const ids = async ({ start }: typeof first) =>
      (await collect(start(twice, echo))).map(({ rolloutId }) => rolloutId).sort();
    const known = await ids(first);
    expect(new Set(known).size).toBe(2);
    expect(await ids(second)).toEqual(known);
  });

  it("runs only what is missing when launched again, and yields the rest as earlier", async () => {
    const { start } = await launchWorld();
    let runs = 0;
    const count: RolloutFunction = () => ++runs;
    await collect(start(rows(4), count));
    const again = await collect(start(rows(6), count));
    expect(runs).toBe(6);
    expect(again.filter((each) => each.state === "sealed" && each.earlier).length).toBe(4);
  });

  it.each([
    ["small", 10],
    ["too large for one message", 100_000],
  ])("stores nothing of a report, %s, that names a record of the book as what it is not", async (_, size) => {
    const { start, book } = await launchWorld();
    const message = sealMessage({ role: "user", content: "a message, and no picture" });
    book.put(message.kind, message.bytes);
    const report = {
      reward: 1,
      calls: [
        {
          ...{ dialect: "other", model: "m", media: [message.digest] },
          request: { messages: [{ role: "user", content: "x".repeat(size) }], parameters: {} },
          response: { messages: [] },
        },
      ],
    };
    const [result] = await collect(start(rows(1), () => report as never));
    expect(result).toMatchObject({ state: "dead", reason: expect.stringContaining("media[0] names") });
    expect((await verifyBook(book, { trustedKeys: [] })).problems).toEqual([]);
  });

  it("retries by owner: providers get three attempts, agents one", async () => {
    const { start } = await launchWorld();
    const attempts: Record<number, number> = {};
    const results = await collect(
      start(rows(3), ({ i }, { attempt }) => {
        attempts[i as number] = attempt;
        if (i === 0 && attempt < 3) throw failedBy("provider", "503");
        if (i === 1) throw failedBy("provider", "down for good");
        if (i === 2) throw new Error("my own fault");
        return 1;
      }),
    );
    expect(attempts).toEqual({ 0: 3, 1: 3, 2: 1 });
    const endings = results
      .sort((a, b) => a.row - b.row)
      .map((each) => each.state === "sealed" && each.ending);
    expect(endings).toMatchObject([{ kind: "terminal" }, { owner: "provider" }, { owner: "agent" }]);
  });

  it("counts the reason that failed most rollouts", async () => {
    const { start } = await launchWorld();
    const launched = start(rows(3), ({ i }) => {
      throw new Error(i === 0 ? "no key" : "no such model");
    });
    await collect(launched);
    expect(launched.progress().commonFailure).toEqual({ reason: "agent: no such model", count: 2 });
  });

  it("says how long it waits for claims of a worker that died", async () => {
    const { start, queue } = await launchWorld({ ttlMs: 2_000 });
    const planned = await start(rows(1), echo, { concurrency: 0, deadlineMs: 1 }).futures();
    const { lane } = (await queue.state(planned[0]!.id))!;
    expect((await queue.claim("dead-worker", 1, { lane })).length).toBe(1);
    const said: string[] = [];
    await collect(start(rows(1), echo, { log: (line) => said.push(line) }));
    expect(said[0]).toMatch(/^1 rollout is claimed by another worker.* within [12] s/);
  });

  it("applies overrides to the rows they are for", async () => {
    const { start } = await launchWorld();
    const results = await collect(
      start(rows(2), (_, { rolloutConfig }) => Number(rolloutConfig.difficulty), {
        extra: { difficulty: 1 },
        override: (_row, index) => (index === 1 ? { config: { difficulty: 7 } } : undefined),
      }),
    );
    const rewards = results
      .sort((a, b) => a.row - b.row)
      .map((each) => each.state === "sealed" && each.reward);
    expect(rewards).toEqual([1, 7]);
  });

  it("leaves nothing behind when its iteration is left: agents stopped, claims given back, attempts uncounted", async () => {
    const { start, queue } = await launchWorld();
    let running = 0;
    const launched = start(rows(20), async ({ i }, { signal }) => {
      if (i === 0) return 1;
      running++;
      await sleep(60_000, undefined, { signal }).finally(() => running--);
      return 1;
    });
    for await (const _ of launched) break;
    expect(running).toBe(0);
    expect(await queue.counts()).toMatchObject({ claimed: 0, dead: 0, done: 1, waiting: 19 });
    expect(await queue.state((await launched.futures())[1]!.id)).toMatchObject({
      state: "waiting",
      attempt: 0,
    });
  });

  it("ends at its deadline with what there is; futures of the rest say so", async () => {
    const { start } = await launchWorld();
    const launched = start(rows(3), async ({ i }, { signal }) => sleep(i === 0 ? 0 : 60_000, 1, { signal }), {
      deadlineMs: 600,
    });
    const futures = await launched.futures();
    expect(await futures[0]!.result()).toMatchObject({ state: "sealed", reward: 1 });
    await expect(futures[1]!.result(10)).rejects.toMatchObject({ code: "not-yet" });
    expect((await collect(launched)).length).toBe(1);
    await expect(futures[1]!.result()).rejects.toMatchObject({ code: "cancelled" });
  });

  it("cancels one future and no other", async () => {
    const { start } = await launchWorld();
    const launched = start(rows(2), async ({ i }, { signal }) => sleep(i === 0 ? 60_000 : 50, 1, { signal }));
    const [first, second] = await launched.futures();
    await sleep(100);
    first!.cancel();
    expect(await first!.result()).toMatchObject({ state: "dead", reason: "cancelled" });
    expect(await second!.result()).toMatchObject({ state: "sealed" });
    await launched.cancel();
  });

  it("holds its rate", async () => {
    const { start } = await launchWorld();
    const startMs = Date.now();
    await collect(start(rows(6), echo, { rate: 4 }));
    expect(Date.now() - startMs).toBeGreaterThan(350);
  });

  it("reports an artifact sealed by a worker that died before saying so, and does not run it again", async () => {
    const { start, book, queue } = await launchWorld();
    let runs = 0;
    // The queue is empty, as if no rollout had been completed. The book still holds the results.
    const count: RolloutFunction = () => ++runs;
    const first = await collect(start(rows(2), count));
    const empty = openSqliteQueue(":memory:", { clock: systemClock });
    const second = await collect(start(rows(2), count, { queue: empty } as never));
    await empty.close();
    expect(runs).toBe(2);
    const contents = (list: typeof first) =>
      list.map((each) => each.state === "sealed" && each.content).sort();
    expect(contents(second)).toEqual(contents(first));
    expect(await queue.counts()).toMatchObject({ done: 2 });
    expect(book.recovered).toEqual([]);
  });

  it("gives every result a signed receipt, also one that a crash took, and the same one when asked again", async () => {
    const { start, book, signer, queue } = await launchWorld();
    const [first] = await collect(start(rows(1), echo));
    const { receipt, content } = first as SealedResult;
    expect(receipt.outcome).toBe("stored");
    expect(openRecord(Receipt, (await book.get(receipt.digest))!.bytes)).toMatchObject({
      subject: content,
      worker: "worker-1",
      claim: `${first!.rolloutId}:1`,
    });
    // A receipt for the artifact without a claim does not answer its upload.
    for (let atMs = 1; atMs <= 64; atMs++) {
      const judged = seal(Receipt, {
        subject: content,
        outcome: "discarded",
        signals: [],
        message: "",
        atMs,
      });
      book.put(judged.kind, judged.bytes);
    }
    await book.flush();
    const [again] = await collect(start(rows(1), echo));
    expect(again).toMatchObject({ earlier: true, receipt });

    // Without receipts, as after a crash between the queue's mark and the receipt: the same claim gets a new receipt.
    const other = await launchWorld();
    for await (const item of book.scan())
      if (item.type === "blob" && item.kind !== Receipt.kind) other.book.put(item.kind, item.bytes);
    await other.book.flush();
    const [third] = await collect(other.start(rows(1), echo, { queue, signer } as never));
    const reissued = (third as SealedResult).receipt;
    expect(reissued.digest).not.toBe(receipt.digest);
    expect(openRecord(Receipt, (await other.book.get(reissued.digest))!.bytes)).toMatchObject({
      subject: content,
      claim: `${first!.rolloutId}:1`,
    });
  });

  it("does not report what nobody trusted has signed: it runs again, and that result counts", async () => {
    const { start } = await launchWorld();
    const stranger = signerFromPem(newKeyPem());
    let runs = 0;
    const count: RolloutFunction = () => ++runs;
    await collect(start(rows(1), count, { signer: stranger }));
    const empty = openSqliteQueue(":memory:", { clock: systemClock });
    const [result] = await collect(start(rows(1), count, { queue: empty } as never));
    await empty.close();
    expect(runs).toBe(2);
    expect(result).toMatchObject({ state: "sealed", reward: 2 });
  });

  it("sends a large artifact by reference", async () => {
    const { start, book } = await launchWorld();
    const [result] = await collect(start(rows(1), () => ({ reward: 1, finalState: "x".repeat(100_000) })));
    expect(result).toMatchObject({ state: "sealed", receipt: { outcome: "stored" } });
    const content = openRecord(RolloutContent, (await book.get((result as SealedResult).content))!.bytes);
    expect((await book.get(content.finalState!))!.bytes).toHaveLength(100_002);
  });

  it("opens the records of an uploaded rollout once, also for its result", async () => {
    const { start, book } = await launchWorld();
    const get = vi.spyOn(book, "get");
    const large: RolloutFunction = () => ({ reward: 1, finalState: "x".repeat(100_000) });
    const [result] = (await collect(start(rows(1), large))) as SealedResult[];
    const readsOf = (digest: string) => get.mock.calls.filter(([each]) => each === digest).length;
    expect([readsOf(result!.content), readsOf(result!.envelope)]).toEqual([1, 1]);
  });

  it("takes a report with a picture that stays elsewhere", async () => {
    const { start } = await launchWorld();
    const elsewhere = digestJson("test", "picture");
    const call = {
      ...{ dialect: "openai-chat", model: "m", media: [elsewhere] },
      request: { messages: [{ role: "user", content: "what is this?" }], parameters: {} },
      response: { messages: [{ role: "assistant", content: "a cat" }], status: 200 },
    };
    const [result] = await collect(start(rows(1), () => ({ reward: 1, calls: [call] }) as never));
    expect(result).toMatchObject({ state: "sealed", reward: 1, usage: { calls: 1 } });
  });

  it("takes results of other workers as its own, and a worker with another agent takes none", async () => {
    const { start, book, queue, signer } = await launchWorld();
    const launched = start(rows(4), echo, { concurrency: 0 });
    await launched.futures();
    const sealed = await openSealedIndex(book.root);
    const server = makeWorkerServer({
      ...{ queue, book, clock: systemClock, signer },
      trusts: (key) => key === signer.publicKey,
      newSession: () => "session",
    });
    const helper = (agent: string) =>
      startWorker({
        ...{ server, signer, queue, book, sealed, clock: systemClock, rng: rngFrom(2n), concurrency: 2 },
        name: parseId("worker-2"),
        agent: functionAgent(echo, { name: "agent.ts", digest: digestJson("test.agent.v1", agent) }),
        recorder: bookRecorder(),
        signal: new AbortController().signal,
        idleMs: 100,
      });
    await helper("another").ended;
    expect(await queue.counts()).toMatchObject({ waiting: 4, done: 0 });
    await helper("agent").ended;
    await sealed.close();
    const results = await collect(launched);
    expect(results.map((each) => each.state === "sealed" && each.worker)).toEqual(Array(4).fill("worker-2"));
  });

  it("holds on to a rollout that it lost and claimed again while the first run had not stopped", async () => {
    const { start } = await launchWorld();
    const clock = manualClock(Date.now());
    const queue = openSqliteQueue(":memory:", { clock });
    let endFirst: (reward: number) => void = () => {};
    let second: "running" | "stopped" | undefined;
    const launched = start(
      rows(1),
      ({ i: _ }, { attempt, signal }) => {
        if (attempt === 1) return new Promise<number>((done) => (endFirst = done));
        second = "running";
        return sleep(60_000, 1, { signal }).finally(() => (second = "stopped"));
      },
      { queue } as never,
    );
    await launched.futures();
    await sleep(50);
    clock.advance(20_001); // simulates a process that was paused
    await expect.poll(() => second, { timeout: 5000 }).toBe("running");
    endFirst(1);
    await sleep(50);
    await launched.cancel();
    expect(second).toBe("stopped");
    expect(await queue.counts()).toMatchObject({ claimed: 0, waiting: 1 });
    await queue.close();
  });

  it("refuses a key in its configuration, which would reach the disk", async () => {
    const { start } = await launchWorld();
    await expect(collect(start(rows(1), echo, { extra: { api_key: "sk-secret" } }))).rejects.toMatchObject({
      code: "key-on-disk",
    });
  });
});
