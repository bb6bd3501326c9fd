/** Starts from a journal and a book that hold different parts of a rollout. */
import { cpSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import { digestJson, RollbookError, rngFrom } from "../../src/base/index.ts";
import { firstInList } from "../../src/collect/gateway/upstream/routes.ts";
import { openRecord, RolloutEvent } from "../../src/contract/index.ts";
import { verifyBook } from "../../src/keep/verify/index.ts";
import { AppendLog, openBook } from "../../src/store/index.ts";
import { readSegment } from "../../src/store/log/log-entry.ts";
import { TestGateway } from "../support/gateway.ts";
import { chatReply, json } from "../support/scripted-upstream.ts";

const call = (test: TestGateway, id: string, content = "hi", model = "tiny") =>
  test.post(`/r/${id}/v1/chat/completions`, { model, messages: [{ role: "user", content }] });
const outcome = (test: TestGateway, rollout: string, idempotencyKey: string) =>
  test.post("/v1/feedback", { rollout, name: "reward", value: 1, idempotencyKey });

describe("a start", () => {
  it("goes on with a rollout whose named router cannot be read at first, once the book is back", async () => {
    let isAway = false;
    const test = await TestGateway.open(
      { routes: { auto: ["tiny"] } },
      {
        async loadRouter() {
          if (isAway) throw new RollbookError("bucket-failed", {}, "the bucket is away.");
          return firstInList(rngFrom(1));
        },
      },
    );
    await test.openRollout({ id: "R", router: digestJson("router", 1), maxTurns: 1 });
    isAway = true;
    await test.restart();
    const ask = () => call(test, "R", "hi", "auto");
    const refused = await ask();
    expect([refused.status, refused.headers.get("x-rollbook-refusal")]).toEqual([503, "router-not-ready"]);
    expect(refused.headers.get("x-should-retry")).toBeNull();
    isAway = false;
    test.upstream.otherwise = json(chatReply({ role: "assistant", content: "ok" }));
    // The first of these calls makes the gateway read the router. Refused calls use no turn.
    await ask();
    expect((await ask()).status).toBe(200);
  });

  it.each(["content without its envelope", "whole artifact"])(
    "keeps the later calls of a rollout that went on after its sealing left a %s",
    async (left) => {
      const test = await TestGateway.open();
      const journal = join(test.root, "journal/gateway");
      await test.openRollout({ id: "R" });
      await call(test, "R", "a");
      await test.stop();
      const before = mkdtempSync(join(tmpdir(), "rollbook-before-"));
      cpSync(test.root, before, { recursive: true });
      await test.start();
      await call(test, "R", "b");
      await test.stop();
      const segments = readdirSync(journal)
        .sort()
        .filter((name) => name.endsWith(".log"));
      const entries = segments.flatMap((name) =>
        readSegment(join(journal, name), Number(name.slice(0, 10))).map(({ payload }) =>
          Buffer.from(payload),
        ),
      );
      // Makes the sealing of the first call, from a run that closed the rollout at that point.
      rmSync(test.root, { recursive: true });
      cpSync(before, test.root, { recursive: true });
      await test.start();
      const closed = await test.post("/v1/rollouts/R/close", {});
      const blobs: { kind: string; digest: string; bytes: Buffer }[] = [];
      for await (const item of test.book.scan())
        if (item.type === "blob")
          blobs.push({ kind: item.kind, digest: item.digest, bytes: Buffer.from(item.bytes) });
      const closing = blobs.find(
        ({ kind, bytes }) =>
          kind === RolloutEvent.kind && openRecord(RolloutEvent, bytes).event.kind === "closed",
      )!;
      await test.stop();

      rmSync(test.root, { recursive: true });
      cpSync(before, test.root, { recursive: true });
      for (const name of readdirSync(journal)) rmSync(join(journal, name));
      const log = AppendLog.open(journal, () => {});
      const [opening, first, ...later] = entries;
      for (const payload of [opening!, first!, closing.bytes, ...later]) log.append([payload]);
      await log.flush();
      await log.close();
      const book = await openBook(test.root, { clock: systemClock });
      const isLeft = ({ kind, digest }: (typeof blobs)[number]) =>
        left === "whole artifact" || (digest !== closed.body.envelope && !kind.includes("attestation"));
      for (const { kind, bytes } of blobs.filter(isLeft)) book.put(kind, bytes);
      await book.flush();
      await book.close();

      await test.start();
      expect(test.gateway.recovered).toContain("R");
      const again = await test.post("/v1/rollouts/R/close", {});
      expect(again.body).toMatchObject({ id: "R", calls: 2 });
    },
  );

  it("does not write an outcome for another call where a part of the journal is released", async () => {
    const test = await TestGateway.open();
    await test.openRollout({ id: "T" });
    await test.openRollout({ id: "R" });
    await test.restart();
    await call(test, "R", "a");
    await test.restart();
    await test.openRollout({ id: "S" });
    await call(test, "R", "b");
    await test.post("/v1/feedback", { call: "R.1", name: "reward", value: 1, idempotencyKey: "k" });
    await test.post("/v1/rollouts/R/close", {});
    const calls = async () => (await test.feedback()).map(({ call: number }) => number);
    expect(await calls()).toEqual([1]);
    await test.restart();
    expect(await calls()).toEqual([1]);
  });
});

describe("two outcomes that come while a rollout is being closed", () => {
  it("are both kept, and each key counts once", async () => {
    const test = await TestGateway.open();
    for (const [first, second] of [
      ["k", "k"],
      ["x", "y"],
    ] as const) {
      const id = `C-${first}${second}`;
      await test.openRollout({ id });
      await call(test, id);
      const closing = test.post(`/v1/rollouts/${id}/close`, {});
      await new Promise((done) => setTimeout(done, 2));
      const answers = await Promise.all([outcome(test, id, first), outcome(test, id, second)]);
      await closing;
      const added = answers.filter(({ body }) => (body as { added: boolean }).added).length;
      expect(added).toBe(new Set([first, second]).size);
      for (const key of [first, second])
        expect((await outcome(test, id, key)).body).toMatchObject({ added: false });
    }
    const keys = (await test.feedback()).map(({ idempotencyKey }) => idempotencyKey);
    expect(keys.sort()).toEqual(["k", "x", "y"]);
  });
});

describe("two gateways that sealed one name", () => {
  it("each find their own artifact after a restart, and verify names both contents", async () => {
    const test = await TestGateway.open();
    const post = async (url: string, path: string, body: object) => {
      const headers = { authorization: "Bearer gateway-token-for-tests", "content-type": "application/json" };
      const response = await fetch(url + path, { method: "POST", headers, body: JSON.stringify(body) });
      return (await response.json()) as { envelope: string; content: string };
    };
    const other = await test.openAnother({ worker: "b" });
    const urls = [test.gateway.url, other.url];
    const envelopes: string[] = [];
    const contents: string[] = [];
    for (const url of urls) {
      await post(url, "/v1/rollouts", { id: "same" });
      const messages = [{ role: "user", content: url }];
      await post(url, "/r/same/v1/chat/completions", { model: "tiny", messages });
      const sealed = await post(url, "/v1/rollouts/same/close", {});
      envelopes.push(sealed.envelope);
      contents.push(sealed.content);
    }
    await other.close(10_000, 10);
    await test.restart();
    const again = await test.openAnother({ worker: "b" });
    const found: string[] = [];
    for (const url of [test.gateway.url, again.url])
      found.push((await post(url, "/v1/rollouts/same/close", {})).envelope);
    await again.close(10_000, 10);
    expect(found).toEqual(envelopes);
    const book = await openBook(test.root, { clock: systemClock, mode: "read" });
    expect((await verifyBook(book)).sameId).toEqual([{ rollout: "same", contents: contents.sort() }]);
    await book.close();
  });
});
