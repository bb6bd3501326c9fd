/** Policies that read embeddings from a user's endpoint. The prompts of this world share no words: only their vectors
 *  show the suitable model. */
import { createHash } from "node:crypto";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import { rngFrom } from "../../src/base/rng.ts";
import { openGateway } from "../../src/book/collect/index.ts";
import { modelsOf } from "../../src/convert/routing-jsonl.ts";
import { Cli, lines } from "../support/cli.ts";
import { decisionLine } from "../support/decision-lines.ts";
import { json, ScriptedUpstream } from "../support/scripted-upstream.ts";

const hashOf = (text: string) => createHash("sha256").update(text).digest();
const suits = (prompt: string) => (hashOf(prompt)[0]! % 2 === 0 ? "small" : "large");

/** Eight numbers. The sign of the third gives the suitable model. */
function vectorOf(prompt: string): number[] {
  const bytes = hashOf(prompt);
  return Array.from({ length: 8 }, (_, i) =>
    i === 2 ? (suits(prompt) === "small" ? 0.8 : -0.8) : bytes[i + 1]! / 128 - 1,
  );
}

const ROWS = 400;

function log(): string {
  const rng = rngFrom(5);
  return lines(
    ...Array.from({ length: ROWS }, (_, i) => {
      const prompt = hashOf(`question ${i}`).toString("hex");
      const chosen = rng.float() < 0.5 ? "small" : "large";
      const row = decisionLine(`d-${i}`, { prompt, reward: chosen === suits(prompt) ? 1 : 0 });
      return { ...row, ...modelsOf(["large", "small"], chosen) };
    }),
  );
}

let cli: Cli;
let endpoint: ScriptedUpstream;
let texts: string[];
const MODEL = "toy-embedder";

beforeEach(async () => {
  cli = new Cli();
  texts = [];
  endpoint = await ScriptedUpstream.open();
  onTestFinished(() => endpoint.close());
  endpoint.otherwise = (response, { body }) => {
    const { input, model } = JSON.parse(body) as { input: string[]; model: string };
    texts.push(...input);
    // In reverse order: the protocol orders vectors only by `index`.
    const data = input
      .map((text, index) => ({ index, embedding: vectorOf(text).slice(model === MODEL ? 0 : 1) }))
      .reverse();
    return json({ object: "list", model, data })(response, { url: "", headers: {}, body });
  };
  await cli.ok("init");
});

function train(data: string, name: string, more = "", model = MODEL): Promise<string> {
  const out = join(cli.folder, name);
  return cli
    .ok(
      `train auto --data ${data} --out ${out} --id ${name} --embedding-model ${model} --embeddings ${endpoint.url}/v1${more}`,
    )
    .then(() => out);
}

test("a router learns from embeddings what no word tells, asks for each prompt once, and is judged by them", async () => {
  const data = cli.file("log.jsonl", log());
  const checkpoint = await train(data, "embedded");
  const first = texts.length;
  expect(first).toBeGreaterThan(150);
  expect(new Set(texts).size).toBe(first);
  expect(endpoint.asked[0]!.url).toBe("/v1/embeddings");
  await train(data, "again");
  expect(texts).toHaveLength(first);
  const judge = (more = "") => cli.run(`evaluate --data ${data} --checkpoint ${checkpoint} --json${more}`);
  const refused = await judge();
  expect(refused.code).toBe(1);
  expect(refused.err).toContain(
    `have none in the cache of the book. Name the endpoint with --embeddings URL`,
  );
  const judged = JSON.parse((await judge(` --embeddings ${endpoint.url}/v1/embeddings`)).out);
  const against = judged.comparisons.find(({ against }: { against: string }) => against === "single");
  expect(against).toMatchObject({ says: "better" });
  expect(texts).toHaveLength(ROWS);
  // All vectors are cached now, so the gate needs no endpoint.
  await cli.ok(`gate --data ${data} --candidate ${checkpoint} --quality-only --epsilon-quality 0.05`);
  rmSync(join(cli.book, "embeddings.db"));
  expect((await judge()).err).toContain("--embeddings URL");
});

test("a floor is set on embedded rows; a busy endpoint is asked again, a refusal is told", async () => {
  const data = cli.file("log.jsonl", log());
  endpoint.play(json({ error: { message: "slow down" } }, 429));
  endpoint.play(json({ error: { message: "took too long" } }, 408));
  await train(data, "floored", " --floor-risk 0.4 --propensity-floor 0.5");
  endpoint.play(json({ error: { message: "no such model" } }, 404));
  const out = join(cli.folder, "refused");
  const other = await cli.run(
    `train ridge --data ${data} --out ${out} --id refused --embedding-model other --embeddings ${endpoint.url}`,
  );
  expect(other.code).toBe(1);
  expect(other.err).toMatch(/embeddings refused other: 404 .*no such model/);
  const nameless = await cli.run(
    `train ridge --data ${data} --out ${out} --id nameless --embeddings ${endpoint.url}`,
  );
  expect(nameless).toMatchObject({ code: 2, err: expect.stringContaining("--embedding-model") });
});

test("a router without an endpoint says what it lacks; with one the gateway asks it before it chooses", async () => {
  const data = cli.file("log.jsonl", log());
  const checkpoint = await train(data, "served");
  const config = (more: string) =>
    cli.file(
      "router.yaml",
      `router:\n  checkpoint: ${checkpoint}\n  allowUngated: true\n  exploration: 0\n  table: { schema: rollbook.static-table.v1, default: [large, small] }\n  candidates: { small: {}, large: {} }\n${more}`,
    );
  const prompt = Array.from({ length: 99 }, (_, i) => `new-${i}`).find((each) => suits(each) === "small")!;
  const [bare] = await cli.json(`route ask --config ${config("")} --prompt ${prompt}`);
  expect(bare.status.serving).toBe("static");
  expect(bare.status.why).toContain(
    `reads embeddings of ${MODEL}, and the router has no endpoint that makes them. Set router.embeddings.url`,
  );
  const endpointOf = `  embeddings: { url: ${endpoint.url}/v1 }\n`;
  const [asked] = await cli.json(`route ask --config ${config(endpointOf)} --prompt ${prompt}`);
  expect(asked.explanation).toMatchObject({ chosen: "small", reason: "policy" });
  const gateway = await openGateway({
    ...{ book: cli.book, port: 0, env: { ROLLBOOK_EMBEDDINGS_KEY: "secret-1" } },
    config: {
      upstreams: { models: { baseUrl: "local:models", retries: 0 } },
      models: { small: { upstream: "models" }, large: { upstream: "models" } },
      router: {
        ...{ checkpoint, allowUngated: true, exploration: 0, embeddings: { url: `${endpoint.url}/v1` } },
        table: { schema: "rollbook.static-table.v1", default: ["large", "small"] },
        shadow: { checkpoint: await train(data, "shadow", "", "other-embedder") },
      },
    },
    local: {
      models: async (request) => {
        const { model } = (await request.json()) as { model: string };
        const message = { role: "assistant", content: model };
        return Response.json({ model, choices: [{ index: 0, message, finish_reason: "stop" }] });
      },
    },
  });
  onTestFinished(() => gateway.close());
  const call = async (content: string) => {
    const body = JSON.stringify({ model: "auto", messages: [{ role: "user", content }] });
    const reply = await fetch(`${gateway.url}/v1/chat/completions`, { method: "POST", body });
    return ((await reply.json()) as { model: string }).model;
  };
  expect(await call(prompt)).toBe("small");
  expect(endpoint.asked.at(-1)!.headers.authorization).toBe("Bearer secret-1");
  // The shadow reads vectors of another embedding model, and gets them.
  expect(gateway.router!.status().counts).toMatchObject({ decisions: 1, fallbacks: 0, shadowed: 1 });
  // Without a vector the policy cannot answer, so the table decides.
  endpoint.otherwise = json({ error: { message: "gone" } }, 400);
  expect(await call(`${prompt} ${prompt}`)).toBe("large");
  // The gateway waits for a silent endpoint once, for a short time. Later calls proceed without it.
  endpoint.otherwise = () => {};
  const before = endpoint.asked.length;
  const startMs = performance.now();
  for (let i = 0; i < 5; i++) expect(await call(`silent-${i}`)).toBe("large");
  expect(performance.now() - startMs).toBeLessThan(15_000);
  expect(endpoint.asked.length - before).toBeLessThan(5);
  // Cached vectors need no request, so the policy still decides for this prompt.
  expect(await call(prompt)).toBe("small");
});
