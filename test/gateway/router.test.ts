/** A `router:` section in the gateway's configuration, through the official client. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import OpenAI from "openai";
import { describe, expect, onTestFinished, test } from "vitest";
import { openGateway } from "../../src/book/collect/index.ts";
import { openBook } from "../../src/book/open/index.ts";
import { explainCall } from "../../src/book/serve/index.ts";
import type { LocalUpstream } from "../../src/collect/gateway/index.ts";
import { RolloutContent } from "../../src/contract/index.ts";
import { writeCheckpoint } from "../../src/policy/index.ts";
import { readRecord } from "../../src/store/index.ts";
import { rejectionOf } from "../support/refusal-of.ts";
import { makePolicy } from "../support/served-policies.ts";

/** Answers with the name of the model; `broken` always fails. */
const models: LocalUpstream = async (request) => {
  const { model } = (await request.json()) as { model: string };
  if (model === "broken") return Response.json({ error: { message: "overloaded" } }, { status: 503 });
  return Response.json({
    ...{ id: "c", object: "chat.completion", created: 1, model },
    choices: [{ index: 0, message: { role: "assistant", content: model }, finish_reason: "stop" }],
    usage: { prompt_tokens: 10, completion_tokens: 1, total_tokens: 11 },
  });
};

async function serve(router: object, names = ["small", "large"], env: Record<string, string> = {}) {
  const root = mkdtempSync(join(tmpdir(), "rollbook-router-"));
  const gateway = await openGateway({
    ...{ book: root, env, local: { models } },
    config: {
      listen: { port: 0 },
      upstreams: { models: { baseUrl: "local:models", retries: 0 } },
      models: Object.fromEntries(
        names.map((name, i) => [name, { upstream: "models", price: { prompt: 1 + i, completion: 4 } }]),
      ),
      router,
    },
  });
  let isOpen = true;
  const close = async () => {
    if (isOpen) await gateway.close();
    isOpen = false;
  };
  onTestFinished(close);
  const post = async (path: string, body: object) => {
    const headers = { "content-type": "application/json" };
    const response = await fetch(gateway.url + path, { method: "POST", headers, body: JSON.stringify(body) });
    expect(response.status).toBeLessThan(300);
    return (await response.json()) as { apiKey: string };
  };
  /** One rollout of one call. */
  const ask = async (id: string, content = "hello") => {
    const { apiKey } = await post("/v1/rollouts", { id, task: { id } });
    const client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey, maxRetries: 0 });
    const reply = await client.chat.completions.create({
      model: "auto",
      messages: [{ role: "user", content }],
    });
    await post(`/v1/rollouts/${id}/close`, {});
    return reply.choices[0]!.message.content!;
  };
  const steps = async () => {
    await close();
    const book = await openBook(root);
    onTestFinished(() => book.close());
    const index = await book.index();
    const contents = await Promise.all(
      [...index.ofKind(RolloutContent.kind)].map(({ digest }) =>
        readRecord(book.store, RolloutContent, digest),
      ),
    );
    return contents.flatMap(({ rolloutId: id, streams }) =>
      streams.flatMap((stream) =>
        stream.level === "step" ? stream.steps.map((step) => ({ id, ...step })) : [],
      ),
    );
  };
  return { root, gateway, close, ask, steps };
}

describe("a router in the gateway's configuration", () => {
  test("answers to `auto` without training, and logs what every choice could have been", async () => {
    const { ask, steps } = await serve({ strategy: "epsilon-greedy", exploration: 0.5, seed: 3 });
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

  test("draws the same for the same seed and the same calls", async () => {
    const play = async () => {
      const { ask } = await serve({ strategy: "epsilon-greedy", exploration: 1, seed: 5 });
      const said: string[] = [];
      for (let i = 0; i < 12; i++) said.push(await ask(`r-${i}`));
      return said;
    };
    expect(await play()).toEqual(await play());
  });

  test("asks the next candidate when one fails, with its probability among the rest", async () => {
    const { ask, steps } = await serve({ table: { default: ["broken", "small"] }, exploration: 0.2 }, [
      "broken",
      "small",
      "large",
    ]);
    for (let i = 0; i < 12; i++) expect(await ask(`r-${i}`)).not.toBe("broken");
    const second = (await steps()).filter(({ candidates }) =>
      candidates[0]!.reasons.includes("failed" as never),
    );
    expect(second.length).toBeGreaterThan(5);
    for (const { candidates } of second) {
      expect(candidates.map(({ probability }) => probability)).toEqual([0, 0.9, 0.1]);
    }
  });

  test("masks what a limit forbids and says so in plain words", async () => {
    const router = { exploration: 0, constraints: { maxPriceUsdPerCall: 0.000_05 } };
    const { root, close, ask } = await serve({ ...router, table: { default: ["large", "small"] } });
    expect(await ask("r-1", "x".repeat(60))).toBe("small");
    await close();
    const book = await openBook(root);
    onTestFinished(() => book.close());
    const { steps } = await explainCall(book, "r-1.0");
    expect(steps[0]).toMatchObject({ chosen: "small", masked: [{ id: "large", reasons: ["over-price"] }] });
  });

  test("reloads under load: no request fails, and no decision is missing from the log", async () => {
    const folder = join(mkdtempSync(join(tmpdir(), "rollbook-reload-")), "policy");
    const write = (round: number) => {
      rmSync(folder, { recursive: true, force: true });
      writeCheckpoint(folder, makePolicy(`r-${round}`, { prefers: round % 2 === 0 ? "small" : "large" }));
    };
    write(0);
    const { gateway, ask, steps } = await serve({
      ...{ checkpoint: folder, allowUngated: true, reload: { everyMs: 20 } },
    });
    let isOver = false;
    const swapping = (async () => {
      for (let round = 1; round <= 30; round++) {
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
    expect(gateway.router!.status().counts.reloads).toBeGreaterThan(5);
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
    const refusal = await rejectionOf(serve(router));
    expect(refusal.message).toMatch(message);
  });

  test("serves the static table where the environment names a checkpoint that is not there", async () => {
    const { gateway, ask } = await serve({}, ["small", "large"], {
      ROLLBOOK_POLICY: "1",
      ROLLBOOK_CHECKPOINT: "/nowhere",
    });
    expect(gateway.router!.status()).toMatchObject({ serving: "static" });
    expect(["small", "large"]).toContain(await ask("r-1"));
  });
});
