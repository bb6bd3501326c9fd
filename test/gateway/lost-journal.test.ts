import { cpSync, mkdtempSync, readdirSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import { parseId } from "../../src/base/ids.ts";
import { eventText } from "../../src/collect/gateway/journal/journal.ts";
import { RolloutEvent } from "../../src/contract/index.ts";
import { openBook } from "../../src/store/index.ts";
import { AppendLog } from "../../src/store/log/append-log.ts";
import { TestGateway, TOKEN } from "../support/gateway.ts";
import { chatReply, json } from "../support/scripted-upstream.ts";

const CHAT = "/v1/chat/completions";
const ASK = { model: "tiny", messages: [{ role: "user", content: "Hi" }] };

const call = (test: TestGateway, rollout: string) => test.post(`/r/${rollout}${CHAT}`, ASK);

async function opened(): Promise<TestGateway> {
  const test = await TestGateway.open();
  test.upstream.otherwise = json(chatReply({ content: "ok" }));
  return test;
}

/** Moves the segments of one run out of the journal, because every run of a gateway writes its own segments. Returns a
 *  function that moves them back. Call it only while the gateway is stopped. */
function moveAway(test: TestGateway, run: number): () => void {
  const name = `${String(run).padStart(10, "0")}.log`;
  const [here, away] = [join(test.root, "journal", "gateway", name), join(test.root, name)];
  renameSync(here, away);
  return () => renameSync(away, here);
}

async function rolloutEvents(test: TestGateway): Promise<Record<string, number>> {
  const page = await fetch(`${test.gateway.url}/metrics`, { headers: { "x-api-key": TOKEN } });
  const found = (await page.text()).matchAll(/^rollbook_gateway_rollouts_total\{event="([\w-]+)"\} (\d+)$/gm);
  return Object.fromEntries([...found].map(([, event, count]) => [event, Number(count)]));
}

describe("a segment of the journal that was moved away", () => {
  it("takes calls from rollouts that go on: the start names them, and their artifacts are failures of the infrastructure", async () => {
    const test = await opened();
    for (const id of ["hurt", "whole"]) {
      await test.openRollout({ id });
      await call(test, id);
    }
    await test.restart();
    for (let i = 0; i < 2; i++) await call(test, "hurt");
    await test.restart();
    for (const id of ["hurt", "whole"]) await call(test, id);
    await test.stop();
    const putBack = moveAway(test, 2);

    await test.start();
    expect(test.gateway.damaged).toEqual([{ rollout: "hurt", missing: [1, 2] }]);
    expect(test.logs.join()).toContain("rollout hurt goes on, but calls 1, 2 are missing from the journal");
    expect(await rolloutEvents(test)).toMatchObject({ recovered: 2, "calls-lost": 1 });

    // After the segment is back, nothing is missing.
    await test.stop();
    putBack();
    await test.start();
    expect(test.gateway.damaged).toEqual([]);
    await test.stop();
    moveAway(test, 2);
    await test.start();
    const hurt = await test.closed("hurt", {
      ending: { kind: "terminal" },
      scores: [{ name: "s", value: 1 }],
    });
    expect(hurt.calls).toHaveLength(2);
    expect(hurt.ending).toEqual({
      kind: "failed",
      owner: "infrastructure",
      message: "calls 1, 2 are missing: a part of the journal is gone. It was closed as terminal.",
    });
    expect((await test.closed("whole")).ending).toEqual({ kind: "terminal" });
    expect((await test.verify()).problems).toEqual([]);
  });

  it("takes what outcomes were said of: the log names those that are left out", async () => {
    const test = await opened();
    await test.openRollout({ id: "a" });
    await call(test, "a");
    await test.restart();
    await call(test, "a");
    await test.restart();
    const grade = (index: number, idempotencyKey: string) =>
      test.post("/v1/feedback", { call: `a.${index}`, name: "good", value: 1, idempotencyKey });
    for (const index of [0, 1]) expect((await grade(index, `k${index}`)).body).toEqual({ added: true });
    await call(test, "a");
    await test.stop();
    moveAway(test, 2);
    await test.start();
    expect((await grade(1, "late")).status).toBe(404);
    await test.closed("a");
    expect((await test.feedback()).map(({ idempotencyKey }) => idempotencyKey)).toEqual(["k0"]);
    expect(test.logs.filter((line) => line.includes("outcome"))).toEqual([
      `rollout a is sealed without outcome good (key "k1"): its call 1 is not in the journal`,
    ]);
  });

  it("takes the beginning of rollouts: the start names them, and what is left waits for the segment", async () => {
    const test = await opened();
    await test.openRollout({ id: "torn" });
    await call(test, "torn");
    await test.restart();
    await call(test, "torn");
    await test.stop();
    const putBack = moveAway(test, 1);

    await test.start();
    expect([test.gateway.recovered, test.gateway.damaged]).toEqual([[], [{ rollout: "torn" }]]);
    expect(test.logs.join()).toContain("rollout torn is in the journal without its beginning");
    expect(await rolloutEvents(test)).toMatchObject({ "beginning-lost": 1 });
    expect((await test.post("/v1/rollouts", { id: "torn" })).body.error.code).toBe("rollout-damaged");
    await test.stop();
    putBack();
    await test.start();
    expect([test.gateway.recovered, test.gateway.damaged]).toEqual([["torn"], []]);
    expect((await test.closed("torn")).calls).toHaveLength(2);
  });
});

/** Restarts from a copy of the journal taken after `act`, while the rollout's first call is in progress. */
async function crashInCall(test: TestGateway, rollout: string, act: () => Promise<void>): Promise<void> {
  const copy = mkdtempSync(join(tmpdir(), "rollbook-journal-"));
  onTestFinished(() => rmSync(copy, { recursive: true }));
  let answer: () => void = () => {};
  const told = new Promise<void>((done) => (answer = done));
  test.upstream.play((response, asked) => told.then(() => test.upstream.otherwise(response, asked)));
  const held = call(test, rollout);
  await expect.poll(() => test.upstream.asked.length).toBe(1);
  await act();
  const journal = join(test.root, "journal", "gateway");
  cpSync(journal, copy, { recursive: true });
  answer();
  await held;
  await test.stop();
  for (const name of readdirSync(journal)) rmSync(join(journal, name));
  cpSync(copy, journal, { recursive: true });
  await test.start();
}

it("a call that was in progress at a crash is not missing: nobody got its reply", async () => {
  const test = await opened();
  await test.openRollout({ id: "a" });
  await crashInCall(test, "a", async () => {
    for (let i = 0; i < 2; i++) await call(test, "a");
  });
  expect([test.gateway.recovered, test.gateway.damaged]).toEqual([["a"], []]);
  expect(await test.closed("a")).toMatchObject({ calls: [{}, {}], ending: { kind: "terminal" } });
});

it("an outcome of a call that was in progress at a crash is not taken for one of the next call, and the log names it", async () => {
  const test = await opened();
  await test.openRollout({ id: "a" });
  const outcome = { call: "a.0", name: "good", value: 1, idempotencyKey: "k" };
  await crashInCall(test, "a", async () => {
    expect((await test.post("/v1/feedback", outcome)).body).toEqual({ added: true });
  });
  expect((await call(test, "a")).headers.get("x-rollbook-call")).toBe("a.1");
  expect(test.gateway.damaged).toEqual([]);
  expect(await test.closed("a")).toMatchObject({ calls: [{}], ending: { kind: "terminal" } });
  expect(await test.feedback()).toEqual([]);
  expect(test.logs.join()).toContain(`rollout a is sealed without outcome good (key "k"): its call 0`);
});

describe("a number that no call was recorded under", () => {
  it("is not missed: a refused call takes none, and one that was in progress at a crash was never there", async () => {
    const test = await TestGateway.open({ defaultUpstream: undefined });
    test.upstream.otherwise = json(chatReply({ content: "ok" }));
    await test.openRollout({ id: "a" });
    await call(test, "a");
    expect((await test.post(`/r/a${CHAT}`, { ...ASK, model: "nobody" })).status).toBe(404);
    expect((await call(test, "a")).headers.get("x-rollbook-call")).toBe("a.1");
    await test.restart();
    expect(test.gateway.damaged).toEqual([]);
  });
});

describe("what a journal says after a closing", () => {
  const event = (rest: object) => Buffer.from(eventText(parseId("a"), rest as never));

  it("counts: an outcome that came later reaches the book, though the artifact is there", async () => {
    const test = await opened();
    // An open rollout keeps the segment, with its entries, when the other rollout is sealed.
    await test.openRollout({ id: "holds" });
    await test.openRollout({ id: "a" });
    await call(test, "a");
    await test.stop();
    const directory = join(test.root, "journal", "gateway");
    const copy = mkdtempSync(join(tmpdir(), "rollbook-journal-copy-"));
    onTestFinished(() => rmSync(copy, { recursive: true, force: true }));
    cpSync(directory, copy, { recursive: true });
    await test.start();
    await test.closed("a");
    // Simulates a journal that lacks the end of the sealing.
    cpSync(directory, copy, { recursive: true });
    await test.stop();
    rmSync(directory, { recursive: true });
    cpSync(copy, directory, { recursive: true });
    const log = AppendLog.open(directory, () => {});
    log.append([event({ kind: "graded", name: "s", value: 1, source: "x", idempotencyKey: "k", atMs: 9 })]);
    await log.close();
    await test.start();
    expect(await test.feedback()).toMatchObject([{ name: "s", value: 1 }]);
    expect((await test.artifacts()).length).toBe(1);
    // A client that sends the same feedback again learns that it is already there.
    const again = { rollout: "a", name: "s", value: 1, source: "x", idempotencyKey: "k" };
    expect((await test.post("/v1/feedback", again)).body).toEqual({ added: false });
    expect(await test.feedback()).toHaveLength(1);
  });

  it("counts more than an older closing in the book: what went on is open", async () => {
    const test = await opened();
    await test.openRollout({ id: "a" });
    await call(test, "a");
    await test.stop();
    const directory = join(test.root, "journal", "gateway");
    const payloads: Buffer[] = [];
    const log = AppendLog.open(directory, ({ payload }) => void payloads.push(Buffer.from(payload)));
    const closed = event({
      ...{ kind: "closed", ending: { kind: "truncated", limit: "time" }, scores: [], atMs: 5 },
      envelope: `sha256:${"ab".repeat(32)}`,
    });
    log.append([closed]);
    log.append([payloads[1]!]);
    await log.close();
    const book = await openBook(test.root, { clock: systemClock });
    for (const each of [payloads[0]!, closed]) book.put(RolloutEvent.kind, each);
    await book.close();
    await test.start();
    expect(test.gateway.recovered).toEqual(["a"]);
  });
});
