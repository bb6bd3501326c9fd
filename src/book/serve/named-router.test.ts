import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { asked, makePolicy } from "../../../test/support/served-policies.ts";
import { manualClock } from "../../base/clock.ts";
import { digestJson } from "../../base/index.ts";
import { behaviourRouter } from "../../collect/sim/index.ts";
import { NamedRouter, newKeyPem, seal, signerFromPem } from "../../contract/index.ts";
import { CHECKPOINT_KIND, parseStaticTable, policyOf, type Router } from "../../policy/index.ts";
import { declaredSoftmax } from "../../serve/index.ts";
import { makeSealer } from "../../store/index.ts";
import { openGateway } from "../collect/index.ts";
import { openBook } from "../open/index.ts";
import { openNamedRouter, recordedRouter, sealNamedRouter } from "./named-router.ts";

const table = parseStaticTable("schema: rollbook.static-table.v1\ndefault: [small, large]\n", "table");
const clock = manualClock(10_000);
const DECLARED = {
  ...{ temperature: 0.5, costWeight: 2 },
  candidates: [
    { id: "small", quality: 0.4 },
    { id: "large", quality: 0.9, callPrice: 0.1 },
  ],
};
const signer = signerFromPem(newKeyPem());

async function makeBook(required?: ReadonlySet<string>) {
  const root = mkdtempSync(join(tmpdir(), "rollbook-named-"));
  const book = await openBook(root, { create: true, clock, signer: () => signer, required });
  onTestFinished(() => book.close());
  const learned = makePolicy("learned");
  book.store.put(CHECKPOINT_KIND, learned.bytes);
  book.store.put(learned.revision.kind, learned.revision.bytes);
  await book.store.flush();
  const { family } = learned.revision.record;
  const name = (router: Router) => sealNamedRouter(book, router, { family, seed: 5n, signer });
  return { book, name, family, policy: policyOf(learned), revision: learned.revision };
}

test("a router read from its record chooses as the router that was sealed, and logs the same revision", async () => {
  const { book, name, policy, family } = await makeBook();
  const routers: Router[] = [
    { table, floor: 0, exploration: 1 },
    { policy, table, floor: 0.2, exploration: 0.3, constraints: { maxLatencyMs: 1e6, onNone: "cheapest" } },
    behaviourRouter("softmax", { models: ["small", "large"], table, temperature: 0.7 }),
    { policy: declaredSoftmax(family, DECLARED), table, floor: 0, exploration: 0.1 },
  ];
  for (const router of routers) {
    const sealed = await name(router);
    expect((await name(router)).digest).toBe(sealed.digest);
    expect(await recordedRouter(book, sealed.record.router)).toMatchObject({ floor: router.floor });
    const choose = await openNamedRouter(book, sealed.digest);
    const again = await openNamedRouter(book, sealed.digest);
    for (let i = 0; i < 20; i++) {
      const question = {
        ...{ alias: "auto", call: `r.${i}`, candidates: asked() },
        context: { prompt: `question ${i}`, fields: {} },
      };
      const answer = choose(question);
      expect(answer.revision.digest).toBe(sealed.record.router);
      expect(again(question).decision).toEqual(answer.decision);
    }
  }
});

test("a record whose parts give another router is refused", async () => {
  const { book, name } = await makeBook();
  const { record } = await name({ table, floor: 0, exploration: 1 });
  const forged = seal(NamedRouter, { ...record, exploration: 0 });
  book.store.put(forged.kind, forged.bytes);
  await book.store.flush();
  await expect(openNamedRouter(book, forged.digest)).rejects.toThrow("its parts give");
});

test("every seed that a record may hold is served, and no two give the same draws", async () => {
  const { book, family } = await makeBook();
  const router = { table, floor: 0, exploration: 1 };
  const draws = async (seed: bigint) => {
    const { digest } = await sealNamedRouter(book, router, { family, seed, signer });
    const choose = await openNamedRouter(book, digest);
    const context = { prompt: "", fields: {} };
    return Array.from({ length: 64 }, (_, i) => {
      const { decision } = choose({ alias: "auto", call: `r.${i}`, candidates: asked(), context });
      return decision.chosen;
    });
  };
  const last = 2n ** 64n - 1n;
  // As doubles, the two seeds are the same number.
  expect(await draws(last)).not.toEqual(await draws(last - 1n));
});

test("where trust is required, a router needs a trusted signature, and so does the revision of its policy", async () => {
  const { book, family, policy, revision } = await makeBook(new Set([signer.publicKey]));
  const stranger = signerFromPem(newKeyPem());
  const plain = { table, floor: 0, exploration: 1 };
  const sealBy = (by: typeof signer, router: Router) =>
    sealNamedRouter(book, router, { family, seed: 5n, signer: by });
  const { digest } = await sealBy(stranger, plain);
  await expect(openNamedRouter(book, digest)).rejects.toMatchObject({ code: "not-trusted" });
  await openNamedRouter(book, digest, { trusts: (key) => key === stranger.publicKey });
  // Sealing again gives the same record, which the book already holds.
  expect((await sealBy(signer, plain)).digest).toBe(digest);
  await openNamedRouter(book, digest);

  const learned = await sealBy(signer, { ...plain, policy });
  await expect(openNamedRouter(book, learned.digest)).rejects.toThrow(revision.digest);
  await makeSealer(book.store, signer).add({ envelope: revision, blobs: [revision] });
  await openNamedRouter(book, learned.digest);
});

test("a gateway with trust: signed refuses a rollout whose router a stranger signed", async () => {
  const { book, family } = await makeBook();
  const stranger = signerFromPem(newKeyPem());
  const router = { table, floor: 0, exploration: 0 };
  const { digest } = await sealNamedRouter(book, router, { family, seed: 5n, signer: stranger });
  const opened = async (trust: "any" | "signed") => {
    const gateway = await openGateway({
      ...{ book, port: 0, identity: () => ({ signer, trusts: () => false }) },
      config: {
        upstreams: { own: { baseUrl: "http://127.0.0.1:1/v1" } },
        models: { small: { upstream: "own" }, large: { upstream: "own" } },
        router: { trust },
      },
    });
    const headers = { "content-type": "application/json" };
    const body = JSON.stringify({ id: trust, router: digest });
    const response = await fetch(`${gateway.url}/v1/rollouts`, { method: "POST", headers, body });
    await gateway.close();
    return [response.status, response.headers.get("x-rollbook-refusal")];
  };
  expect(await opened("any")).toEqual([201, null]);
  expect(await opened("signed")).toEqual([422, "not-trusted"]);
});

test("a rollout that names a router is routed by it, before and after a restart of the gateway", async () => {
  const { book, name } = await makeBook();
  const small = await name({ table, floor: 0, exploration: 0 });
  const largeTable = parseStaticTable("schema: rollbook.static-table.v1\ndefault: [large]\n", "table");
  const large = await name({ table: largeTable, floor: 0, exploration: 0 });
  const open = () =>
    openGateway({
      ...{ book, port: 0, identity: () => ({ signer, trusts: () => true }) },
      config: {
        upstreams: { own: { baseUrl: "local:own" } },
        models: { small: { upstream: "own" }, large: { upstream: "own" } },
        routes: { auto: ["small", "large"] },
      },
      local: {
        own: async (request) => {
          const { model } = (await request.json()) as { model: string };
          const message = { role: "assistant", content: model };
          return Response.json({
            ...{ id: "c", object: "chat.completion", created: 1, model },
            choices: [{ index: 0, message, finish_reason: "stop" }],
          });
        },
      },
    });
  let gateway = await open();
  const post = async (path: string, body: object, key = "") => {
    const headers = { "content-type": "application/json", authorization: `Bearer ${key}` };
    const response = await fetch(gateway.url + path, { method: "POST", headers, body: JSON.stringify(body) });
    return { status: response.status, ...((await response.json()) as Record<string, unknown>) };
  };
  const ask = async (rollout: string) => {
    const body = { model: "auto", messages: [{ role: "user", content: "hi" }] };
    const reply: Record<string, unknown> = await post("/v1/chat/completions", body, `rb-${rollout}`);
    return (reply.choices as { message: { content: string } }[])[0]!.message.content;
  };
  await post("/v1/rollouts", { id: "a", router: small.digest });
  await post("/v1/rollouts", { id: "b", router: large.digest });
  expect([await ask("a"), await ask("b")]).toEqual(["small", "large"]);
  await gateway.close();
  gateway = await open();
  onTestFinished(() => gateway.close());
  expect([await ask("a"), await ask("b")]).toEqual(["small", "large"]);
  const missing = await post("/v1/rollouts", { id: "c", router: digestJson("none", "none") });
  expect(missing.status).toBeGreaterThanOrEqual(400);
  expect(JSON.stringify(missing)).toContain("missing-blob");
});
