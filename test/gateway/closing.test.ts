import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { digestJson } from "../../src/base/digest.ts";
import { parseId, systemClock } from "../../src/base/index.ts";
import type { Admission, Submitted } from "../../src/collect/receipt.ts";
import {
  Attestation,
  BookHead,
  newKeyPem,
  openRecord,
  Receipt,
  signerFromPem,
} from "../../src/contract/index.ts";
import { openBook } from "../../src/store/index.ts";
import { TestGateway } from "../support/gateway.ts";
import { chatReply, json } from "../support/scripted-upstream.ts";

const CHAT = "/v1/chat/completions";
const ASK = { model: "tiny", messages: [{ role: "user", content: "Hi" }] };
const as = ({ apiKey }: { apiKey: string }) => ({ authorization: `Bearer ${apiKey}` });

async function opened(options: Parameters<typeof TestGateway.open>[1] = {}, opening: object = {}) {
  const test = await TestGateway.open({}, options);
  test.upstream.otherwise = json(chatReply({ content: "ok" }));
  const rollout = await test.openRollout(opening);
  await test.post(CHAT, ASK, as(rollout));
  return { test, rollout };
}

const judge = ({ content, nowMs }: Submitted): Admission => ({
  outcome: "quarantined",
  signals: [],
  message: `${content.rolloutId} at ${nowMs}`,
});

/** Runs `closing` and returns a copy of the journal from just after it. The active segment still holds released
 *  entries. */
async function journalAtSealing<T>(test: TestGateway, closing: () => Promise<T>): Promise<[T, string]> {
  const copy = mkdtempSync(join(tmpdir(), "rollbook-journal-"));
  onTestFinished(() => rmSync(copy, { recursive: true }));
  const closed = await closing();
  cpSync(join(test.root, "journal"), copy, { recursive: true });
  expect(journalText(test)).toContain(`"kind":"closed"`);
  return [closed, copy];
}

function journalText({ root }: TestGateway): string {
  const directory = join(root, "journal", "gateway");
  const segments = readdirSync(directory).filter((name) => name.endsWith(".log"));
  return segments.map((name) => readFileSync(join(directory, name), "latin1")).join("");
}

type StoredBlob = { kind: string; bytes: Uint8Array };

/** All blobs except heads. On a slow machine a head is written before the end, and it names packs of this book only. */
async function blobsOf(test: TestGateway): Promise<StoredBlob[]> {
  const blobs: StoredBlob[] = [];
  for await (const item of test.book.scan())
    if (item.type === "blob" && item.kind !== BookHead.kind)
      blobs.push({ kind: item.kind, bytes: item.bytes.slice() });
  return blobs;
}

/** Starts on a new book of the same name that holds only these blobs, as after a crash. */
async function startWith(test: TestGateway, blobs: readonly StoredBlob[], journal?: string): Promise<void> {
  await test.stop();
  rmSync(test.root, { recursive: true });
  const book = await openBook(test.root, { clock: systemClock });
  for (const { kind, bytes } of blobs) book.put(kind, bytes);
  await book.close();
  if (journal !== undefined) cpSync(journal, join(test.root, "journal"), { recursive: true });
  await test.start();
  await test.gateway.sealIdle();
}

describe("closing", () => {
  it("keeps the final state by digest, and scores with the digest of their scorer", async () => {
    const { test, rollout } = await opened();
    const scorer = digestJson("test", "scorer");
    const finalState = { answer: 4, left: [] };
    const artifact = await test.closed(rollout.id, {
      scores: [{ name: "right", value: 1, scorer }],
      finalState,
    });
    expect(artifact.scores).toEqual([{ name: "right", value: 1, weight: 1, scorer }]);
    const state = await test.book.get(artifact.finalState);
    expect(JSON.parse(Buffer.from(state!.bytes).toString())).toEqual(finalState);
    expect(await test.verify()).toMatchObject({ problems: [], external: 0 });
  });

  it("with null as the final state keeps null, which is not nothing", async () => {
    const { test, rollout } = await opened();
    const { finalState } = await test.closed(rollout.id, { finalState: null });
    expect(Buffer.from((await test.book.get(finalState))!.bytes).toString()).toBe("null");
  });

  it("names in the envelope who ran the rollout and under which claim, if the opening said so", async () => {
    const run = { worker: "worker-7", attempt: 2, claim: "r-1:2" };
    const { test, rollout } = await opened({}, { id: "r-1.2", run });
    expect((await test.post("/v1/rollouts", { id: "r-1.2", run: { ...run, attempt: 3 } })).status).toBe(409);
    await test.restart();
    expect((await test.closed(rollout.id)).envelope).toMatchObject(run);
  });

  it("that a crash cuts short anywhere is finished at the next start: one artifact, in the same words, signed", async () => {
    const { test, rollout } = await opened({ admit: judge });
    await test.post("/v1/feedback", { rollout: rollout.id, name: "good", value: 1, idempotencyKey: "k" });
    const closing = {
      ending: { kind: "truncated", limit: "time" },
      scores: [{ name: "right", value: 0.5 }],
      finalState: "late",
    };
    const [first, journal] = await journalAtSealing(test, () => test.closed(rollout.id, closing));
    const blobs = await blobsOf(test);
    expect(blobs.length).toBeGreaterThan(8);
    // The final state comes first: it is on disk before the journal names it.
    for (let kept = 1; kept <= blobs.length; kept++) {
      await startWith(test, blobs.slice(0, kept), journal);
      expect((await test.artifacts()).map(({ contentDigest }) => contentDigest)).toEqual([
        first.contentDigest,
      ]);
      expect(await test.verify()).toMatchObject({
        ...{ problems: [], external: 0, trust: { artifacts: 1, trusted: 1 } },
      });
      expect(new Set((await test.feedback()).map(({ idempotencyKey }) => idempotencyKey)).size).toBe(1);
      expect((await test.post("/v1/rollouts", { id: rollout.id })).status).toBe(409);
    }
  });

  it("leaves the journal only when the artifact is signed; until then it is tried again, in the same words", async () => {
    const key = signerFromPem(newKeyPem());
    let isLocked = true;
    const signAside = (text: string) =>
      isLocked ? Promise.reject(new Error("the key is locked")) : key.signAside(text);
    const { test, rollout } = await opened({ signer: { ...key, signAside } });
    expect((await test.post(`/v1/rollouts/${rollout.id}/close`, { finalState: 7 })).status).toBe(500);
    expect(await test.artifacts()).toEqual([]);
    await test.stop();
    expect(journalText(test)).toContain(`"kind":"closed"`);
    isLocked = false;
    await test.start();
    await test.gateway.sealIdle();
    expect((await test.artifacts()).map(({ finalState }) => typeof finalState)).toEqual(["string"]);
    expect((await test.verify()).trust).toMatchObject({ artifacts: 1, signed: 1 });
    await test.stop();
    expect(journalText(test)).toBe("");
    await test.start();
  });

  it("whose signature a crash took is signed again at the next start; what was never to be signed is not", async () => {
    const { test, rollout } = await opened();
    const [, journal] = await journalAtSealing(test, () => test.closed(rollout.id));
    const unsigned = (await blobsOf(test)).filter(({ kind }) => kind !== Attestation.kind);
    await startWith(test, unsigned, journal);
    expect(await test.verify()).toMatchObject({ problems: [], trust: { artifacts: 1, trusted: 1 } });

    const keyless = await opened({ signer: undefined });
    await keyless.test.closed(keyless.rollout.id);
    await keyless.test.restart();
    expect((await keyless.test.verify()).trust).toMatchObject({ artifacts: 1, signed: 0 });
  });
});

describe("an open rollout", () => {
  it("says what it has used so far, to its owner, also after a restart", async () => {
    const { test, rollout } = await opened();
    const status = (headers: Record<string, string>) =>
      fetch(`${test.gateway.url}/v1/rollouts/${rollout.id}`, { headers });
    const owner = { authorization: "Bearer gateway-token-for-tests" };
    const told = {
      id: rollout.id,
      turns: 1,
      usage: { calls: 1, promptTokens: 7, completionTokens: 3, costUsd: 13e-6 },
    };
    expect(await (await status(owner)).json()).toEqual(told);
    expect((await status(as(rollout))).status).toBe(403);
    test.upstream.play(json(chatReply({ content: "ok" }, { usage: null })));
    await test.post(CHAT, ASK, as(rollout));
    // The cost of a call without usage is unknown, not 0.
    const both = { ...told, turns: 2, usage: { ...told.usage, calls: 2, unpriced: 1 } };
    expect(await (await status(owner)).json()).toEqual(both);
    // A refused call has a known cost: nothing.
    test.upstream.play(json({ error: { message: "no" } }, 400));
    await test.post(CHAT, ASK, as(rollout));
    const three = { ...both, turns: expect.any(Number), usage: { ...both.usage, calls: 3 } };
    expect(await (await status(owner)).json()).toEqual(three);
    await test.restart();
    expect(await (await status(owner)).json()).toEqual(three);
    await test.closed(rollout.id);
    expect((await status(owner)).status).toBe(503);
  });
});

describe("admission", () => {
  it("judges what is closed; the report names the receipt, which is sealed, signed and kept over restarts", async () => {
    const { test, rollout } = await opened({ admit: judge });
    const close = async () => (await test.post(`/v1/rollouts/${rollout.id}/close`)).body;
    const report = await close();
    const receipt = openRecord(Receipt, (await test.book.get(report.receipt))!.bytes);
    expect(receipt).toMatchObject({ outcome: "quarantined", subject: report.content, worker: "gateway" });
    const signed: string[] = [];
    for await (const item of test.book.scan())
      if (item.type === "blob" && item.kind === Attestation.kind)
        signed.push(...openRecord(Attestation, item.bytes).subjects);
    expect(signed).toEqual(expect.arrayContaining([report.envelope, report.receipt]));
    await test.restart();
    expect(await close()).toEqual(report);
  });

  it("names no claim: which artifact is the result of an item is for the worker server to say", async () => {
    const run = { worker: "worker-7", attempt: 1, claim: "r-1:1" };
    const { test, rollout } = await opened({ admit: judge }, { id: "r-1", run });
    const { receipt } = (await test.post(`/v1/rollouts/${rollout.id}/close`)).body;
    const { worker, claim } = openRecord(Receipt, (await test.book.get(receipt))!.bytes);
    expect([worker, claim]).toEqual(["worker-7", undefined]);
  });

  it("that fails keeps no outcome waiting that came in the meantime", async () => {
    let fail: (() => void) | undefined;
    const { test, rollout } = await opened({
      admit: () => new Promise<never>((_, failed) => (fail = () => failed(new Error("no target")))),
    });
    const closing = test.post(`/v1/rollouts/${rollout.id}/close`);
    await expect.poll(() => test.post(CHAT, ASK, as(rollout)).then(({ status }) => status)).toBe(503);
    const outcome = { rollout: rollout.id, name: "good", value: 1, idempotencyKey: "k" };
    const graded = test.post("/v1/feedback", outcome);
    await expect.poll(() => fail).toBeDefined();
    fail!();
    expect((await closing).status).toBe(500);
    expect((await graded).body).toEqual({ added: true });
    expect((await test.post("/v1/feedback", outcome)).body).toEqual({ added: false });
  });

  it("that fails leaves the rollout open, to be closed again", async () => {
    let broken = true;
    const { test, rollout } = await opened({
      admit: (each) => {
        if (broken) throw new Error("no target");
        return judge(each);
      },
    });
    expect((await test.post(`/v1/rollouts/${rollout.id}/close`)).status).toBe(500);
    expect(test.logs.join()).toContain(`rollout ${rollout.id} could not be sealed and stays open: no target`);
    broken = false;
    expect((await test.post(`/v1/rollouts/${rollout.id}/close`)).status).toBe(200);
    expect(parseId(rollout.id)).toBe((await test.artifacts())[0]!.rolloutId);
  });
});
