/** A `router:` section in the gateway's configuration, through the official client. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { decisionRows } from "../../src/book/decisions/index.ts";
import { readTranscript } from "../../src/book/rollouts/index.ts";
import { explainCall } from "../../src/book/serve/index.ts";
import { toLoggedRow, toRoutingRow } from "../../src/convert/routing-jsonl.ts";
import { toJudgedRows } from "../../src/judge/index.ts";
import { digestRows } from "../../src/learn/index.ts";
import { writeCheckpoint } from "../../src/policy/index.ts";
import { collect } from "../support/collect.ts";
import { rejectionOf } from "../support/refusal-of.ts";
import { routedGateway } from "../support/routed-gateway.ts";
import { makePolicy, placePolicy } from "../support/served-policies.ts";

describe("a router in the gateway's configuration", () => {
  test("answers to `auto` without training, and logs what every choice could have been", async () => {
    const { ask, steps } = await routedGateway({ strategy: "epsilon-greedy", exploration: 0.5, seed: 3 });
    const said: string[] = [];
    for (let i = 0; i < 40; i++) said.push(await ask(`r-${i}`));
    expect(new Set(said)).toEqual(new Set(["small", "large"]));
    const logged = await steps();
    expect(logged).toHaveLength(40);
    for (const step of logged) {
      expect(step.candidates.map(({ probability }) => probability)).toEqual([0.75, 0.25]);
      expect(step.candidates[step.chosen]!.id).toBe(said[Number(step.id.slice(2))]);
    }
  });

  test("decides for every route with one table, which may name the models of each", async () => {
    const routes = { auto: ["small", "large"], "claude-auto": ["haiku", "sonnet"] };
    const options = { names: ["small", "large", "haiku", "sonnet"], config: { routes } };
    const play = async (table: object | undefined) => {
      const router = { aliases: ["auto", "claude-auto"], exploration: 0, ...(table && { table }) };
      const { post, gateway } = await routedGateway(router, options);
      const chosen: string[] = [];
      for (const model of ["auto", "claude-auto"])
        chosen.push((await post("/v1/route", { model, prompt: "hello" })).body.model);
      expect(gateway.router!.status().counts.fallbacks).toBe(0);
      return chosen;
    };
    expect(await play({ default: ["large", "sonnet"] })).toEqual(["large", "sonnet"]);
    expect(await play(undefined)).toEqual(["small", "haiku"]);
    const refused = await rejectionOf(play({ default: ["large", "sonet"] }));
    expect(refused.message).toMatch(
      /chooses "sonet".*Did you mean sonnet\? Known: small, large, haiku, sonnet/,
    );
  });

  test("draws the same for the same seed and the same calls", async () => {
    const play = async () => {
      const { ask } = await routedGateway({ strategy: "epsilon-greedy", exploration: 1, seed: 5 });
      const said: string[] = [];
      for (let i = 0; i < 12; i++) said.push(await ask(`r-${i}`));
      return said;
    };
    expect(await play()).toEqual(await play());
  });

  test("asks the next candidate when one fails, with its probability among the rest", async () => {
    const { ask, steps } = await routedGateway(
      { table: { default: ["broken", "small"] }, exploration: 0.2 },
      { names: ["broken", "small", "large"] },
    );
    for (let i = 0; i < 12; i++) expect(await ask(`r-${i}`)).not.toBe("broken");
    const second = (await steps()).filter(({ candidates }) =>
      candidates[0]!.reasons.includes("failed" as never),
    );
    expect(second.length).toBeGreaterThan(5);
    for (const { candidates } of second) {
      expect(candidates.map(({ probability }) => probability)).toEqual([0, 0.9, 0.1]);
    }
  });

  test("seals what its shadow would have done beside what it did", async () => {
    const { ask, steps } = await routedGateway({
      ...{ table: { default: ["small"] }, exploration: 0.5 },
      shadow: { checkpoint: placePolicy(makePolicy("shadow", { prefers: "large" })) },
    });
    for (let i = 0; i < 6; i++) await ask(`r-${i}`);
    const logged = await steps();
    expect(logged).toHaveLength(6);
    for (const { revision, shadow, candidates } of logged) {
      expect(candidates.map(({ probability }) => probability)).toEqual([0.75, 0.25]);
      expect(shadow!.probabilities[1]).toBeGreaterThan(0.5);
      expect(shadow!.revision.digest).not.toBe(revision.digest);
    }
  });

  test("masks what a limit forbids and says so in plain words", async () => {
    const router = { exploration: 0, constraints: { maxPriceUsdPerCall: 0.000_05 } };
    const { openAgain, ask } = await routedGateway({ ...router, table: { default: ["large", "small"] } });
    expect(await ask("r-1", "x".repeat(60))).toBe("small");
    const { steps } = await explainCall(await openAgain(), "r-1.0");
    expect(steps[0]).toMatchObject({ chosen: "small", masked: [{ id: "large", reasons: ["over-price"] }] });
  });

  test("its decisions carry what their calls cost, once a call, for the judges", async () => {
    const { ask, close, openAgain } = await routedGateway(
      { table: { default: ["broken", "small"] }, exploration: 0.2, seed: 3 },
      { names: ["broken", "small"] },
    );
    for (let i = 0; i < 4; i++) await ask(`r-${i}`);
    await close();
    const { rows } = await decisionRows(await openAgain(), { family: "router", unlabelled: "keep" });
    const logged = await collect(rows());
    // 10 prompt tokens at 2 USD per million and 1 completion token at 4 USD per million. A failed first try belongs to
    // the same call.
    const bill = (10 * 2 + 4) / 1e6;
    expect(logged.length).toBeGreaterThan(4);
    for (const row of logged)
      expect(row.costUsd).toBe(row.candidates[row.chosen]!.id === "broken" ? 0 : bill);
    const labelled = logged.map((row) => ({ ...row, reward: 1 }));
    const judged = toJudgedRows(labelled, "task");
    expect(judged.callCosts).toBe(true);
    expect(judged.rows.map(({ measures }) => measures.cost)).toEqual(logged.map(({ costUsd }) => costUsd));
    // One row has its own cost term: dollars and terms do not mix. Trainers read no costs, so the digest leaves them
    // out.
    const terms = { cost: { value: 3, weight: -1 } };
    const mixed = toJudgedRows([{ ...labelled[0]!, terms }, ...labelled.slice(1)], "task");
    expect([mixed.callCosts, mixed.rows[1]!.measures.cost]).toEqual([false, null]);
    expect(digestRows(logged)).toBe(digestRows(logged.map(({ costUsd: _, ...row }) => row)));
    expect(toLoggedRow(toRoutingRow(logged[0]!))).toMatchObject({ costUsd: logged[0]!.costUsd });
  });

  test("a decision costs what its rollout spends up to the next decision, calls that name a model included", async () => {
    const [small, large] = [(10 * 1 + 4) / 1e6, (10 * 2 + 4) / 1e6];
    const costsOf = async (models: readonly string[]) => {
      const book = await bookOfRollout(models);
      const { rows } = await decisionRows(book, { family: "router", unlabelled: "keep" });
      const logged = (await collect(rows())).map((row) => ({ ...row, reward: 1 }));
      const costs = toJudgedRows(logged, "task").rows.map(({ measures }) => measures.cost);
      return { costs, total: (await readTranscript(book, "r-1")).totals.costUsd };
    };
    const once = await costsOf(["auto", "large"]);
    expect(once).toEqual({ costs: [small + large], total: small + large });
    // A decision does not cause the costs before it.
    expect((await costsOf(["large", "auto", "large", "large", "auto", "small"])).costs).toEqual([
      small + large + large,
      small + small,
    ]);
    // A failed call is not billed. A call without a price leaves the sum unknown.
    expect((await costsOf(["auto", "broken", "large"])).costs).toEqual([small + large]);
    expect((await costsOf(["auto", "unpriced", "auto"])).costs).toEqual([null, small]);
  });

  test("says which calls a rollout has, and how to name one", async () => {
    const book = await bookOfRollout(["auto", "large"]);
    expect((await rejectionOf(explainCall(book, "r-1"))).message).toBe(
      "r-1 has 2 calls: r-1.0 (small), r-1.1 (large). Name one of them, for example `rollbook route explain r-1.0`.",
    );
    expect((await rejectionOf(explainCall(book, "r-1.7"))).message).toMatch(
      /^r-1 has 2 calls, and no call 7: r-1\.0/,
    );
    expect((await rejectionOf(explainCall(book, "r-1.1"))).message).toMatch(
      /call 1 was not routed.*Routed: r-1\.0\./,
    );
  });

  test("lists the first 8 calls of a long rollout, and counts the rest", async () => {
    const book = await bookOfRollout([...Array<string>(10).fill("auto"), "large"]);
    expect((await rejectionOf(explainCall(book, "r-1"))).message).toMatch(
      /^r-1 has 11 calls: r-1\.0 \(small\), .*r-1\.7 \(small\) and 3 more\. Name/,
    );
    expect((await rejectionOf(explainCall(book, "r-1.10"))).message).toMatch(
      /Routed: r-1\.0, .*r-1\.7 and 2 more\.$/,
    );
  });

  test("a limit that must refuse does so in words, before and after a failure, and serves on", async () => {
    const { post } = await routedGateway(
      {
        ...{ exploration: 0, table: { default: ["broken"] } },
        constraints: { maxPriceUsdPerCall: 0.0042, onNone: "refuse" },
      },
      { names: ["broken", "large"] },
    );
    const ask = (length: number) =>
      post("/v1/chat/completions", {
        ...{ model: "auto", max_tokens: 1000 },
        messages: [{ role: "user", content: "x".repeat(length) }],
      });
    // Both models are above the limit.
    const none = await ask(4000);
    expect(none.status).toBe(422);
    expect(none.body.error.message).toMatch(/broken: over-price; large: over-price/);
    // Only the failing model is below the limit, so the client gets its upstream's error.
    expect(await ask(500)).toMatchObject({ status: 503, body: { error: { message: "overloaded" } } });
    expect((await ask(1)).status).toBe(200);
  });

  test("reloads under load: no request fails, and no decision is missing from the log", async () => {
    const folder = join(mkdtempSync(join(tmpdir(), "rollbook-reload-")), "policy");
    const write = (round: number) => {
      rmSync(folder, { recursive: true, force: true });
      writeCheckpoint(folder, makePolicy(`r-${round}`, { prefers: round % 2 === 0 ? "small" : "large" }));
    };
    write(0);
    const { gateway, ask, steps } = await routedGateway({
      ...{ checkpoint: folder, allowUngated: true, reload: { everyMs: 20 } },
    });
    const reloads = () => gateway.router!.status().counts.reloads;
    let isOver = false;
    const swapping = (async () => {
      // A busy machine reloads less often.
      for (let round = 1; round <= 30 || reloads() <= 5; round++) {
        write(round);
        await sleep(50);
      }
      isOver = true;
    })();
    let asked = 0;
    const client = async (number: number) => {
      while (!isOver) await ask(`r-${number}-${asked++}`);
    };
    await Promise.all([swapping, ...Array.from({ length: 50 }, (_, number) => client(number))]);
    const logged = await steps();
    expect(logged).toHaveLength(asked);
    expect(new Set(logged.map(({ revision }) => revision.digest)).size).toBeGreaterThan(1);
  }, 60_000);

  test.each([
    [
      "a candidate that is not a model",
      { candidates: { lage: {} } },
      /lage, which is not a model\. Did you mean large\?/,
    ],
    ["a key nobody reads", { explore: 0.1 }, /explor/],
    ["an alias that is a model", { aliases: ["small"] }, /small is both a model and an alias/],
  ])("refuses %s before it listens", async (_what, router, message) => {
    const refusal = await rejectionOf(routedGateway(router));
    expect(refusal.message).toMatch(message);
  });

  test("tells in its metrics what serves, and counts choices and reloads", async () => {
    const folder = placePolicy(makePolicy("first", { prefers: "small" }));
    const { gateway, ask } = await routedGateway({ checkpoint: folder, allowUngated: true });
    for (const id of ["r-1", "r-2", "r-3"]) await ask(id);
    rmSync(folder, { recursive: true });
    writeCheckpoint(folder, makePolicy("second"));
    await gateway.router!.reload();
    const text = await (await fetch(`${gateway.url}/metrics`)).text();
    expect(text).toContain("\nrollbook_router_decisions_total 3\n");
    expect(text).toContain("\nrollbook_router_reloads_total 1\n");
    const { router } = gateway.router!.status();
    expect(text).toContain(
      `rollbook_router_serving_since_seconds{serving="policy",router="${router}",policy="second"} `,
    );
  });

  test("serves the static table where the environment names a checkpoint that is not there", async () => {
    const { gateway, ask } = await routedGateway(
      {},
      { env: { ROLLBOOK_POLICY: "1", ROLLBOOK_CHECKPOINT: "/nowhere" } },
    );
    expect(gateway.router!.status()).toMatchObject({ serving: "static" });
    expect(["small", "large"]).toContain(await ask("r-1"));
  });
});

/** The book after a rollout `r-1` that called these models one after the other. */
async function bookOfRollout(models: readonly string[]) {
  const names = ["small", "large", "broken"];
  const priced = names.map((name, i) => [
    name,
    { upstream: "models", price: { prompt: 1 + i, completion: 4 } },
  ]);
  const { post, close, openAgain } = await routedGateway(
    { exploration: 0, table: { default: ["small"] } },
    { config: { models: { ...Object.fromEntries(priced), unpriced: { upstream: "models" } } } },
  );
  const { body } = await post("/v1/rollouts", { id: "r-1", task: { id: "t" } });
  for (const model of models) {
    const request = { model, messages: [{ role: "user", content: "hello" }] };
    const answer = await post("/v1/chat/completions", request, { authorization: `Bearer ${body.apiKey}` });
    expect(answer.status).toBe(model === "broken" ? 503 : 200);
  }
  await post("/v1/rollouts/r-1/close", {});
  await close();
  return openAgain();
}
