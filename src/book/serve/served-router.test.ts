import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { asked, keyOf, makePolicy, verdictOn } from "../../../test/support/served-policies.ts";
import { manualClock } from "../../base/clock.ts";
import { columnFrom, digestJson, parseId, short } from "../../base/index.ts";
import { rngFrom } from "../../base/rng.ts";
import { checkGatewayConfig, type Gateway, openGateway } from "../../collect/gateway/index.ts";
import { Attestation, FloorPromise, newKeyPem, Rollback, seal, signerFromPem } from "../../contract/index.ts";
import { ConfidenceSequence } from "../../judge/ope/index.ts";
import {
  CHECKPOINT_KIND,
  type Checkpoint,
  digestRouter,
  parseStaticTable,
  policyOf,
} from "../../policy/index.ts";
import type { RouterConfigInput } from "../../serve/index.ts";
import { verifyBook } from "../maintain/index.ts";
import { type OpenBook, openBook } from "../open/index.ts";
import { explainCall } from "./explain-call.ts";
import { listRollbacks } from "./list-rollbacks.ts";
import { type BookRouter, openServedRouter } from "./served-router.ts";

const TABLE = { default: ["small", "large"] };
const table = parseStaticTable(JSON.stringify({ schema: "rollbook.static-table.v1", ...TABLE }), "table");
const CONFIG: RouterConfigInput = {
  ...{ checkpoint: "released", table: TABLE, exploration: 0 },
  rollback: { feedback: "solved", settleMs: 0, everyMs: 600_000 },
};

async function makeBook() {
  const clock = manualClock(10_000);
  const signer = signerFromPem(newKeyPem());
  const root = mkdtempSync(join(tmpdir(), "rollbook-serve-"));
  const book = await openBook(root, { create: true, clock, signer: () => signer });
  onTestFinished(() => book.close());
  const judge = async (checkpoint: Checkpoint, atMs: number, outcome: "pass" | "refuse") => {
    const router = { policy: policyOf(checkpoint), table, floor: 0.5, exploration: 0 };
    const verdict = verdictOn(checkpoint, { ...router, digest: digestRouter(router) }, { atMs, outcome });
    book.store.put(CHECKPOINT_KIND, checkpoint.bytes);
    for (const { kind, bytes } of [checkpoint.revision, verdict]) book.store.put(kind, bytes);
    await book.store.flush();
    return verdict;
  };
  const release = (checkpoint: Checkpoint, atMs: number) => judge(checkpoint, atMs, "pass");
  const serve = async () => {
    const served = await openServedRouter(book, CONFIG, { candidates: asked() });
    const gateway = await openGateway({
      ...{ book: book.store, clock, env: {}, rng: rngFrom(1), newId: () => "r", signer },
      config: checkGatewayConfig({
        listen: { port: 0 },
        upstreams: { models: { baseUrl: "local:models", retries: 0 } },
        models: { small: { upstream: "models" }, large: { upstream: "models" } },
        routes: { auto: ["small", "large"] },
      }),
      choose: served.router.choose,
      local: {
        models: async (request) => {
          const { model } = (await request.json()) as { model: string };
          const message = { role: "assistant", content: model };
          return Response.json({
            ...{ id: "c", object: "chat.completion", created: 1, model },
            choices: [{ index: 0, message, finish_reason: "stop" }],
          });
        },
      },
    });
    onTestFinished(() => gateway.close().then(() => served.close()));
    return { served, gateway };
  };
  return { book, clock, judge, release, serve };
}

/** Plays rollouts of one call; `large` is the reward of the large model, the small model earns 1. */
async function play({ url }: Gateway, names: readonly string[], large: number): Promise<string[]> {
  const post = async (path: string, body: object, key?: string) => {
    const headers = { "content-type": "application/json", ...(key && { authorization: `Bearer ${key}` }) };
    const response = await fetch(url + path, { method: "POST", headers, body: JSON.stringify(body) });
    expect(response.status).toBeLessThan(300);
    return (await response.json()) as { apiKey: string; choices: { message: { content: string } }[] };
  };
  const chosen: string[] = [];
  for (const id of names) {
    const { apiKey } = await post("/v1/rollouts", { id, task: { id } });
    const messages = [{ role: "user", content: "add one and two" }];
    const { choices } = await post("/v1/chat/completions", { model: "auto", messages }, apiKey);
    await post(`/v1/rollouts/${id}/close`, {});
    const model = choices[0]!.message.content;
    const value = model === "large" ? large : 1;
    await post("/v1/feedback", { rollout: id, name: "solved", value, idempotencyKey: id });
    chosen.push(model);
  }
  return chosen;
}

const names = (prefix: string, count: number) =>
  Array.from({ length: count }, (_, i) => `${prefix}-${String(i).padStart(3, "0")}`);
const statusOf = ({ router }: BookRouter) => router.status();

describe("a router on a book", () => {
  test("serves a release as soon as there is one, and takes it back where its outcomes are worse", async () => {
    const { book, clock, release, serve } = await makeBook();
    const { served, gateway } = await serve();
    expect(statusOf(served)).toMatchObject({ serving: "static" });
    expect(new Set(await play(gateway, names("old", 40), 0))).toEqual(new Set(["small"]));

    const policy = makePolicy("r1");
    const verdict = await release(policy, 20_000);
    clock.advance(60_000);
    expect(await served.router.reload()).toBe("swapped");
    expect(statusOf(served)).toMatchObject({ serving: "policy", verdict: verdict.digest });
    expect(await served.look()).toMatchObject({ evidence: { pairs: 0 } });
    // The policy is a softmax: it draws the large model nearly always.
    const chosen = await play(gateway, names("new", 40), 0);
    const large = chosen.filter((model) => model === "large").length;
    expect(large).toBeGreaterThan(30);

    const look = await served.look();
    expect(look?.rollback?.record).toMatchObject({
      ...{ family: "router", verdict: verdict.digest, from: { policy: keyOf(policy) } },
      evidence: { comparedWith: "record", feedback: "solved", before: 1 },
    });
    expect(look!.rollback!.record.evidence.fresh).toBeLessThan(0.5);
    expect(statusOf(served)).toMatchObject({ serving: "static", counts: { rollbacks: 1 } });
    expect(await play(gateway, names("back", 3), 0)).toEqual(["small", "small", "small"]);

    // The sealed differences alone show the harm again.
    const { alpha, range, terms, upper } = look!.rollback!.record.evidence;
    const values = columnFrom("f64", (await book.store.get(terms.digest))!.bytes) as Float64Array;
    const width = range.high - range.low;
    const sequence = new ConfidenceSequence({ range: { low: -width, high: width }, level: 1 - 2 * alpha });
    for (const value of values) sequence.add(value);
    expect(sequence.interval().high).toBe(upper);

    const { report } = await verifyBook(book);
    expect(report).toMatchObject({ ok: true, counts: { [Rollback.kind]: 1 } });
    // After reopening, the book still excludes the policy, until a newer verdict passes it.
    const again = await openServedRouter(book, CONFIG, { candidates: asked() });
    expect(statusOf(again)).toMatchObject({ serving: "static" });
    const { schema: _, evidence, ...facts } = look!.rollback!.record;
    const listed = { record: look!.rollback!.digest, ...facts };
    expect(await listRollbacks(book)).toMatchObject([{ ...listed, state: "holds", evidence: { upper } }]);
    clock.advance(60_000);
    await release(policy, clock.nowMs());
    expect(await listRollbacks(book)).toMatchObject([{ ...listed, state: "released-again" }]);
    // The same book for a reader who trusts no key.
    const strict: OpenBook = {
      ...{ root: book.root, store: book.store, clock, signer: undefined, required: new Set() },
      ...{ index: () => book.index(), close: async () => {} },
    };
    expect(await listRollbacks(strict)).toMatchObject([{ ...listed, state: "untrusted" }]);
    expect(await again.router.reload()).toBe("swapped");
    await again.close();
  });

  test("leaves a release alone whose outcomes are as good", async () => {
    const { clock, release, serve } = await makeBook();
    const { served, gateway } = await serve();
    await play(gateway, names("old", 30), 1);
    await release(makePolicy("r1"), 20_000);
    clock.advance(60_000);
    await served.router.reload();
    await play(gateway, names("new", 30), 1);
    expect(await served.look()).toMatchObject({ evidence: { harm: false, pairs: 30 } });
    expect(statusOf(served)).toMatchObject({ serving: "policy", counts: { rollbacks: 0 } });
  });

  test("prefers the release before to the table, where there is one", async () => {
    const { release, book } = await makeBook();
    const [one, two] = [makePolicy("r1"), makePolicy("r2", { prefers: "small" })];
    await release(one, 20_000);
    await release(two, 30_000);
    const served = await openServedRouter(book, CONFIG, { candidates: asked() });
    expect(statusOf(served)).toMatchObject({ policy: keyOf(two) });
    expect(served.router.rollBack("by hand")).toMatchObject({
      to: { router: { policy: { revision: keyOf(one) } } },
    });
    await served.close();
  });
});

test("a router closes after its reload, so that the book can close without a word", async () => {
  const { book, release } = await makeBook();
  await release(makePolicy("r1"), 20_000);
  const lines: string[] = [];
  const log = (line: string) => lines.push(line);
  const served = await openServedRouter(book, CONFIG, { candidates: asked(), log });
  await release(makePolicy("r2"), 30_000);
  const reload = served.router.reload();
  await served.close();
  await book.close();
  expect(await reload).toBe("swapped");
  expect(lines.filter((line) => line.startsWith("warning"))).toEqual([]);
});

describe("with trust: signed", () => {
  test("a verdict releases nothing until a trusted key has signed it", async () => {
    const { book, release } = await makeBook();
    const [own, other] = [signerFromPem(newKeyPem()), signerFromPem(newKeyPem())];
    const verdict = await release(makePolicy("r1"), 20_000);
    const config = { ...CONFIG, trust: "signed" } as const;
    const trusts = (key: string) => key === own.publicKey;
    const served = await openServedRouter(book, config, { candidates: asked(), trusts });
    onTestFinished(() => served.close());
    const sign = async (attestation: { kind: string; bytes: Uint8Array }) => {
      book.store.put(attestation.kind, attestation.bytes);
      await book.store.flush();
      return served.router.reload();
    };
    expect(statusOf(served)).toMatchObject({
      ...{ serving: "static", why: expect.stringContaining("1 verdict not signed by a trusted key") },
    });
    expect(await sign(other.attest([verdict.digest]))).toBe("unchanged");
    // The signature covers other content; the list of subjects was replaced.
    const { record } = own.attest([digestJson("test", 1)]);
    const forged = seal(Attestation, { ...record, subjects: [verdict.digest] });
    expect(await sign(forged)).toBe("unchanged");
    // The bytes are not a record, but the index finds the digest in them.
    const broken = { kind: Attestation.kind, bytes: Buffer.from(`{"subjects":["${verdict.digest}"]}`) };
    expect(await sign(broken)).toBe("unchanged");
    expect(await sign(own.attest([verdict.digest]))).toBe("swapped");
    expect(statusOf(served)).toMatchObject({ serving: "policy", verdict: verdict.digest });
  });

  test("a floor that no trusted key has signed does not take a released policy out of service", async () => {
    const { book, release } = await makeBook();
    const own = signerFromPem(newKeyPem());
    const policy = makePolicy("r1");
    const verdict = await release(policy, 20_000);
    const signature = own.attest([verdict.digest]);
    const forged = seal(FloorPromise, {
      ...{ policy: keyOf(policy), table: table.digest, floor: null, alpha: 0.1, units: 1, largestLoss: 1 },
      ...{ empiricalRisk: 1, bound: 1, coverage: 1, feedback: "full", measure: parseId("solved") },
      ...{ range: { low: 0, high: 1 }, propensityFloor: 0, data: digestJson("test", 1), atMs: 30_000 },
      split: { unit: "task", salt: "", shares: [0, 1, 0] },
    });
    for (const { kind, bytes } of [signature, forged]) book.store.put(kind, bytes);
    await book.store.flush();
    const config = { ...CONFIG, trust: "signed" } as const;
    const trusts = (key: string) => key === own.publicKey;
    const served = await openServedRouter(book, config, { candidates: asked(), trusts });
    onTestFinished(() => served.close());
    expect(statusOf(served)).toMatchObject({ serving: "policy", verdict: verdict.digest });
  });

  test("a verdict file is refused: it carries no signature", async () => {
    const { book } = await makeBook();
    const config = { ...CONFIG, trust: "signed", verdict: "verdict.json" } as const;
    await expect(openServedRouter(book, config)).rejects.toThrow("a file carries no signature");
  });
});

describe("an explanation of a recorded call", () => {
  test("tells the choice, the policy, and the features that mattered, from the book alone", async () => {
    const { book, release, serve } = await makeBook();
    const policy = makePolicy("r1", { sure: 1 });
    await release(policy, 20_000);
    const { gateway } = await serve();
    await play(gateway, ["run-1"], 1);
    const { steps, rollout, call } = await explainCall(book, "run-1.0");
    expect([rollout, call, steps.length]).toEqual(["run-1", 0, 1]);
    const [step] = steps;
    expect(step).toMatchObject({ chosen: "large", reason: "policy", policy: keyOf(policy) });
    expect(step!.probability).toBeCloseTo(1 / (1 + Math.exp(-1)), 9);
    expect(step!.features).toEqual([{ feature: "bias of the prompt", part: 1 }]);
    expect(step!.lines.join("\n")).toMatch(/around revision r1, judged by the gate verdict/);
    expect((await explainCall(book, "run-1")).steps).toEqual(steps);
    expect((await explainCall(book, "run-1/0/0")).steps).toEqual(steps.slice(0, 1));
    await expect(explainCall(book, "run-1/0/9")).rejects.toThrow(/run-1 has no decision 0\/9/);
    await expect(explainCall(book, "run-1.4")).rejects.toThrow(/and no call 4/);
    await expect(explainCall(book, "run-9.0")).rejects.toThrow(/no rollout "run-9"/);
  });

  test("names the verdict that released the router, not one that refused it", async () => {
    const { book, judge, release, serve } = await makeBook();
    const policy = makePolicy("r1", { sure: 1 });
    for (const atMs of [12_000, 14_000, 16_000]) await judge(policy, atMs, "refuse");
    const refused = await judge(policy, 30_000, "refuse");
    await release(policy, 20_000);
    const released = await release(policy, 25_000);
    const { gateway } = await serve();
    await play(gateway, ["run-1"], 1);
    const { steps } = await explainCall(book, "run-1.0");
    expect(steps[0]!.lines.join("\n")).toContain(`, judged by the gate verdict ${short(released.digest)}`);
    expect(steps[0]!.lines.join("\n")).not.toContain(short(refused.digest));
  });
});
