/** One book, through the command line alone: collect with exploration, train, gate, and serve the released policy. A
 *  real client calls the gateway, the reply is graded, and the decision is in the next batch. */
import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import OpenAI from "openai";
import { beforeAll, expect, it, onTestFinished } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import { Cli } from "../support/cli.ts";
import { chatReply, json, ScriptedUpstream } from "../support/scripted-upstream.ts";

const main = resolve("dist/cli/main.js");
const CALLS = 400;

beforeAll(() => {
  if (!existsSync(main)) throw new Error("dist/ is missing. Run: npm run build");
});

/** `rollbook gateway` in its own process, until `stop`. */
async function startGateway(cli: Cli, config: string) {
  const env = { ...process.env, ROLLBOOK_HOME: cli.home, ROLLBOOK_BOOK: cli.book };
  const child = spawn(process.execPath, [main, "gateway", "--config", config, "--json"], {
    ...{ env, stdio: ["ignore", "pipe", "pipe"] },
  });
  let log = "";
  child.stderr.on("data", (bytes) => {
    log += String(bytes);
  });
  const ended = new Promise<void>((done) => child.once("exit", () => done()));
  const stop = async () => {
    child.kill("SIGTERM");
    await ended;
  };
  onTestFinished(stop);
  const told = await new Promise<string>((done, failed) => {
    child.stdout.once("data", (bytes) => done(String(bytes)));
    child.once("exit", () => failed(new Error(log)));
  });
  return { url: JSON.parse(told).url as string, stop, log: () => log };
}

/** One call for `auto`, as any client makes it. */
async function ask(url: string, content: string) {
  const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: "none", maxRetries: 0 });
  const { data, response } = await client.chat.completions
    .create({ model: "auto", messages: [{ role: "user", content }] })
    .withResponse();
  const rollout = response.headers.get("x-rollbook-rollout")!;
  return { rollout, model: data.choices[0]!.message.content! };
}

it("a policy goes from the log to the gateway, and what it serves goes into the next batch", async () => {
  const upstream = await ScriptedUpstream.open();
  onTestFinished(() => upstream.close());
  upstream.otherwise = (response, asked) =>
    json(chatReply({ content: (JSON.parse(asked.body) as { model: string }).model }))(response, asked);
  const cli = new Cli({ clock: systemClock });
  const gatewayWith = (name: string, router: object) =>
    cli.file(
      name,
      JSON.stringify({
        listen: { port: 0 },
        upstreams: { up: { baseUrl: upstream.url } },
        models: { small: { upstream: "up" }, large: { upstream: "up" } },
        router,
      }),
    );
  /** Grades a rollout. `large` is right on proofs, `small` on everything else. */
  const grade = async (url: string, rollout: string, isRight: boolean) => {
    const words = `feedback ${rollout} --name solved --value ${isRight ? 1 : 0} --gateway ${url}`;
    expect(await cli.run(words)).toMatchObject({ code: 0 });
  };

  await cli.ok("init");
  const collecting = await startGateway(
    cli,
    gatewayWith("collect.yaml", { strategy: "epsilon-greedy", exploration: 1 }),
  );
  for (let i = 0; i < CALLS; i += 40)
    await Promise.all(
      Array.from({ length: 40 }, async (_, j) => {
        const isHard = j % 2 === 0;
        const prompt = isHard ? `prove lemma ${i + j}` : `say hello ${i + j} times`;
        const { rollout, model } = await ask(collecting.url, prompt);
        await grade(collecting.url, rollout, (model === "large") === isHard);
      }),
    );
  await collecting.stop();

  const policy = join(cli.folder, "policy");
  const source = "--family router --feedback solved";
  await cli.ok(
    `train linucb --id router-1 --alpha 0.1 --unit decision --split 30/0/70 ${source} --out ${policy}`,
  );
  const [verdict] = await cli.json(
    `gate --candidate ${policy} ${source} --baseline behaviour --epsilon-quality 0 --quality-only --exploration 0.1`,
  );
  expect(verdict).toMatchObject({ outcome: "pass", passed: { id: "router-1" } });

  const serving = await startGateway(
    cli,
    gatewayWith("serve.yaml", { checkpoint: "released", trust: "signed", seed: 1 }),
  );
  expect(serving.log()).toContain("revision router-1, released by the gate verdict");
  const served = await ask(serving.url, "prove lemma 1000");
  // One call in twenty explores. The call id seeds the draw, and the id is new in every run.
  const isRight = served.model === "large";
  await grade(serving.url, served.rollout, isRight);
  await serving.stop();

  const [{ steps }] = await cli.json(`route explain ${served.rollout}.0`);
  expect(steps[0]).toMatchObject({ chosen: served.model, reason: "policy", policy: { id: "router-1" } });
  expect(steps[0].probability).toBeCloseTo(isRight ? 0.95 : 0.05);
  const { id: router } = steps[0].router;
  const [{ digest, batch }] = await cli.json(
    `batch assemble --target ${router} --level step --freshness none --advantage none ${source}`,
  );
  expect(batch.totals.rows).toBe(CALLS + 1);
  const out = join(cli.folder, "batch.jsonl");
  await cli.ok(`batch export ${digest} --format jsonl --out ${out}`);
  const row = readFileSync(out, "utf8")
    .split("\n")
    .find((line) => line.includes(`"rollout_id":"${served.rollout}"`));
  expect(JSON.parse(row!)).toMatchObject({ reward: isRight ? 1 : 0 });
  // The next policy learns from this batch, and its revision leads back to the call.
  await cli.ok(
    `train linucb --id router-2 --parent router-1 --alpha 0.1 --split all ${source} --out ${join(cli.folder, "next")}`,
  );
  expect(await cli.ok("verify router-2")).toContain(`${CALLS + 1} `);
}, 120_000);
