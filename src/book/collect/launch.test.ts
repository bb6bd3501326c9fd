import { once } from "node:events";
import { existsSync, unlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it, onTestFinished } from "vitest";
import { collect } from "../../../test/support/launch-world.ts";
import { libraryHome } from "../../../test/support/library-home.ts";
import { defineRollout, type RolloutFunction, type RolloutResult } from "../../collect/rollout/index.ts";
import { newKeyPem, signerFromPem } from "../../contract/index.ts";
import { collectGarbage } from "../maintain/collect-garbage.ts";
import { verifyBook } from "../maintain/verify.ts";
import { openBook, useBook } from "../open/open-book.ts";
import { listRollouts, showRollout } from "../rollouts/rollouts.ts";
import { launch } from "./launch.ts";
import { experimentOutcomes } from "./launch-outcomes.ts";
import { reportLaunch } from "./launch-report.ts";
import { startWorker } from "./worker.ts";

const tasks = [{ i: 1 }, { i: 2 }];
const echo: RolloutFunction = ({ i }) => i as number;

/** Packs that a process still writes to. */
const openPacks = async (root: string) => (await collectGarbage(root, { dryRun: true })).packsLeft;

describe("launch on a book", () => {
  it("needs a book, an agent and a number of samples, and seals rollouts that the user's new key has signed", async () => {
    const { path } = libraryHome();
    const book = path("runs");
    const results = await collect(launch(tasks, { book, agent: echo, samples: 2 }));
    expect(results.map((each) => each.state === "sealed" && each.reward).sort()).toEqual([1, 1, 2, 2]);
    expect(existsSync(path("home/key.pem"))).toBe(true);
    await useBook(book, { mode: "read" }, async (opened) => {
      const { report } = await verifyBook(opened);
      expect(report.problems).toEqual([]);
      expect(report.trust).toMatchObject({ artifacts: 4, trusted: 4 });
    });
  });

  it("leaves no book and no key behind where the file of tasks is wrong", async () => {
    const { path } = libraryHome();
    for (const wrong of [path("none.jsonl"), path(".")])
      await expect(launch(wrong, { book: path("runs"), agent: echo }).ended).rejects.toThrow();
    expect([path("runs"), path("home/key.pem")].filter(existsSync)).toEqual([]);
  });

  it("leaves no book and no key behind where the gateway writes to another book, and makes the book of its gateway", async () => {
    const { path } = libraryHome();
    let root = path("other");
    const server = createServer((_, response) => response.end(JSON.stringify({ id: "b-other", root })));
    await once(server.listen(0, "127.0.0.1"), "listening");
    onTestFinished(() => void server.close());
    const gateway = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const launched = () => launch(tasks, { book: path("runs"), agent: echo, gateway }).ended;
    const message = expect.stringMatching(
      /other \(b-other\), .*runs \(a new book\)\. .*use --book .*other here/,
    );
    await expect(launched()).rejects.toMatchObject({ code: "other-book", message });
    expect([path("runs"), path("home/key.pem")].filter(existsSync)).toEqual([]);
    root = path("runs");
    await expect(launched()).rejects.toMatchObject({ message: expect.not.stringContaining("a new book") });
    expect(existsSync(path("runs"))).toBe(true);
  });

  it("takes tasks from a file and from an async iterable, and both are the same rollouts", async () => {
    const { path } = libraryHome();
    writeFileSync(path("tasks.jsonl"), tasks.map((each) => `${JSON.stringify(each)}\n`).join(""));
    async function* stream() {
      yield* tasks;
    }
    const ids = async (from: Parameters<typeof launch>[0], book: string) =>
      (await collect(launch(from, { book: path(book), agent: echo })))
        .map(({ rolloutId }) => rolloutId)
        .sort();
    const known = await ids(tasks, "a");
    expect(await ids(path("tasks.jsonl"), "b")).toEqual(known);
    expect(await ids(stream(), "c")).toEqual(known);
  });

  it("knows a function by its text: a definition of it is the same agent, another function is another", async () => {
    const { path } = libraryHome();
    const book = path("runs");
    const lines: string[] = [];
    const log = (line: string) => lines.push(line);
    await collect(launch(tasks, { book, agent: echo, log }));
    expect(lines.splice(0)).toContain(`made a new book at ${book}`);
    const again = await collect(launch(tasks, { book, agent: defineRollout(echo), log }));
    expect(lines).not.toContain(`made a new book at ${book}`);
    expect(again.map((each) => each.state === "sealed" && each.earlier)).toEqual([true, true]);
    const other = await collect(launch(tasks, { book, agent: ({ i }) => Number(i) * 2 }));
    expect(other.map((each) => each.state === "sealed" && each.earlier)).toEqual([false, false]);
  });

  it("closes a book that it opened, when it ends, when it is left and when only futures are asked for", async () => {
    const { path } = libraryHome();
    const [ended, left, asked] = [path("ended"), path("left"), path("asked")];
    await collect(launch(tasks, { book: ended, agent: echo }));
    expect(await openPacks(ended)).toBe(0);
    for await (const _ of launch(tasks, { book: left, agent: echo })) break;
    expect(await openPacks(left)).toBe(0);
    const launched = launch(tasks, { book: asked, agent: echo });
    const futures = await launched.futures();
    expect(await futures[0]!.result()).toMatchObject({ state: "sealed" });
    await launched.ended;
    expect(await openPacks(asked)).toBe(0);
  });

  it("counts the last result of a sample that failed and was run again", async () => {
    const { path } = libraryHome();
    const broken = path("broken");
    writeFileSync(broken, "");
    const agent = path("agent.mjs");
    writeFileSync(
      agent,
      `import { existsSync } from "node:fs";
export default ({ i }) => { if (existsSync(${JSON.stringify(broken)})) throw new Error("down"); return i; };`,
    );
    const request = { book: path("runs"), agent, isolation: "none", samples: 2 } as const;
    const endings = (results: RolloutResult[]) =>
      results.map((each) => each.state === "sealed" && each.ending.kind);
    expect(endings(await collect(launch(tasks, request)))).toEqual(Array(4).fill("failed"));
    unlinkSync(broken);
    const retried = await collect(launch(tasks, { ...request, retry: {} }));
    expect(endings(retried)).toEqual(Array(4).fill("terminal"));
    const again = launch(tasks, request);
    const results = await collect(again);
    expect(endings(results)).toEqual(Array(4).fill("terminal"));
    expect(results.map(({ rolloutId }) => rolloutId).sort()).toEqual(
      retried.map(({ rolloutId }) => rolloutId).sort(),
    );
    expect(again.progress()).toMatchObject({ done: 4, earlier: 4, failed: {} });
  });

  it("counts the last launch of a task, with all equal lines of its file", async () => {
    const { path } = libraryHome();
    const book = path("runs");
    const lines = [{ i: 1 }, { i: 1 }, { i: 2 }];
    const failing: RolloutFunction = () => {
      throw new Error("down");
    };
    await collect(launch(lines, { book, agent: failing, worker: "first" }));
    await collect(launch(lines, { book, agent: echo, samples: 2, worker: "second" }));
    await collect(launch([{ i: 3 }], { book, agent: failing, worker: "third" }));
    await useBook(book, { mode: "read" }, async (opened) => {
      const outcomes = await experimentOutcomes(opened, "default");
      expect(outcomes.map(({ reward }) => reward).sort()).toEqual([1, 1, 1, 1, 2, 2, null]);
      const { passAt, tasks } = reportLaunch(outcomes);
      expect(passAt[0]!.value).toBeCloseTo(2 / 3, 12);
      expect(tasks.map(({ rollouts }) => rollouts).sort()).toEqual([1, 2, 4]);
    });
    const retried = await collect(launch([...lines, { i: 3 }], { book, agent: echo, retry: {} }));
    expect(retried.map((each) => each.state === "sealed" && each.reward)).toEqual([3]);
  });

  it("leaves an open book open, and signs with its key", async () => {
    const { path } = libraryHome();
    const signer = signerFromPem(newKeyPem());
    const book = await openBook(path("runs"), { create: true, signer: () => signer });
    const [result] = await collect(launch([{ i: 1 }], { book, agent: echo }));
    const { envelopes } = await showRollout(book, result!.rolloutId);
    expect(envelopes[0]!.signers).toEqual([signer.publicKey]);
    expect(await listRollouts(book)).toHaveLength(1);
    expect(await openPacks(book.root)).toBeGreaterThan(0);
    await book.close();
    expect(existsSync(path("home/key.pem"))).toBe(false);
  });

  it("throws what was wrong with its options where it is iterated, and opens nothing", async () => {
    const { path } = libraryHome();
    const launched = launch(tasks, { book: path("runs"), agent: path("missing.mjs") });
    await expect(collect(launched)).rejects.toMatchObject({ code: "bad-agent" });
    await expect(launched.futures()).rejects.toMatchObject({ code: "bad-agent" });
    expect(existsSync(path("runs"))).toBe(false);
    expect(launched.progress()).toMatchObject({ total: 0, done: 0 });
  });
});

describe("startWorker on a book", () => {
  it("works on the queue of the book and tells what it has done", async () => {
    const { path } = libraryHome();
    const book = path("runs");
    const launched = launch(tasks, { book, agent: echo, concurrency: 0 });
    await launched.futures();
    const worker = startWorker({ book, agent: echo, worker: "helper" });
    expect(await worker.ended).toEqual({ begun: 2, receipts: { stored: 2 } });
    expect((await collect(launched)).map((each) => each.state === "sealed" && each.worker)).toEqual([
      "helper",
      "helper",
    ]);
  });

  it("gives its claims back when stopped", async () => {
    const { path } = libraryHome();
    const book = path("runs");
    const forever: RolloutFunction = (_, { signal }) => sleep(60_000, 1, { signal });
    const launched = launch(tasks, { book, agent: forever, concurrency: 0 });
    await launched.futures();
    const worker = startWorker({ book, agent: forever, idleMs: "never" });
    await sleep(500);
    expect(await worker.stop()).toEqual({ begun: 2, receipts: {} });
    await launched.cancel();
  });

  it("refuses a book without a queue", async () => {
    const { path } = libraryHome();
    await (await openBook(path("runs"), { create: true })).close();
    await expect(startWorker({ book: path("runs"), agent: echo }).ended).rejects.toMatchObject({
      code: "no-queue",
    });
  });
});
