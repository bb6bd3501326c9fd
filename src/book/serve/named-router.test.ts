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
import { openGateway } from "../collect/index.ts";
import { openBook } from "../open/index.ts";
import { openNamedRouter, sealNamedRouter } from "./named-router.ts";

const table = parseStaticTable("schema: rollbook.static-table.v1\ndefault: [small, large]\n", "table");
const clock = manualClock(10_000);
const signer = signerFromPem(newKeyPem());

async function makeBook() {
  const root = mkdtempSync(join(tmpdir(), "rollbook-named-"));
  const book = await openBook(root, { create: true, clock, signer: () => signer });
  onTestFinished(() => book.close());
  const learned = makePolicy("learned");
  book.store.put(CHECKPOINT_KIND, learned.bytes);
  book.store.put(learned.revision.kind, learned.revision.bytes);
  await book.store.flush();
  const { family } = learned.revision.record;
  const name = (router: Router) => sealNamedRouter(book, router, { family, seed: 5n, signer });
  return { book, name, family, policy: policyOf(learned) };
}

test("a router read from its record chooses as the router that was sealed, and logs the same revision", async () => {
  const { book, name, policy } = await makeBook();
  const routers: Router[] = [
    { table, floor: 0, exploration: 1 },
    { policy, table, floor: 0.2, exploration: 0.3, constraints: { maxLatencyMs: 1e6, onNone: "cheapest" } },
    behaviourRouter("softmax", { models: ["small", "large"], table, temperature: 0.7 }),
  ];
  for (const router of routers) {
    const sealed = await name(router);
    expect((await name(router)).digest).toBe(sealed.digest);
    const choose = await openNamedRouter(book, sealed.digest, undefined);
    const again = await openNamedRouter(book, sealed.digest, undefined);
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
  await expect(openNamedRouter(book, forged.digest, undefined)).rejects.toThrow("its parts give");
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
