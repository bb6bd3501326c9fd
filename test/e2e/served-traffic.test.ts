/** The second policy from served traffic: chat calls for `auto` without a rollout, feedback, then train, evaluate and gate. */
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import { openGateway } from "../../src/book/collect/index.ts";
import { Cli } from "../support/cli.ts";
import { chatReply } from "../support/scripted-upstream.ts";

const CALLS = 600;
const ROUTER = `router:
  strategy: epsilon-greedy
  exploration: 1
  candidates: { cheap: { callPrice: 0.001 }, strong: { callPrice: 0.02 } }
`;

const ends: (() => void)[] = [];
const cli = new Cli({ clock: systemClock, whenDone: (remove) => ends.push(remove) });
const policy = join(cli.folder, "policy");
afterAll(() => ends.forEach((end) => void end()));

/** Strong is right on proofs, cheap on everything else. Every prompt is another one. */
async function serve(): Promise<void> {
  const config = cli.file(
    "gateway.yaml",
    `upstreams: { up: { baseUrl: "local:up" } }\nmodels: { cheap: { upstream: up }, strong: { upstream: up } }\n${ROUTER}`,
  );
  const answer = async (request: Request) => {
    const { model } = (await request.json()) as { model: string };
    return Response.json(chatReply({ content: model }));
  };
  const gateway = await openGateway({ book: cli.book, config, port: 0, env: {}, local: { up: answer } });
  const post = (path: string, body: object) =>
    fetch(`${gateway.url}${path}`, { method: "POST", body: JSON.stringify(body) });
  const call = async (i: number) => {
    const isHard = i % 2 === 0;
    const content = isHard ? `Prove lemma ${i} of the group` : `Say hello ${i} times`;
    const reply = await post("/v1/chat/completions", {
      model: "auto",
      messages: [{ role: "user", content }],
    });
    const body = (await reply.json()) as { choices: [{ message: { content: string } }] };
    const isStrong = body.choices[0].message.content === "strong";
    const rollout = reply.headers.get("x-rollbook-rollout")!;
    const grade = { rollout, name: "solved", value: isStrong === isHard ? 1 : 0, idempotencyKey: rollout };
    expect((await post("/v1/feedback", grade)).ok).toBe(true);
  };
  for (let i = 0; i < CALLS; i += 20) await Promise.all(Array.from({ length: 20 }, (_, j) => call(i + j)));
  await gateway.close();
}

beforeAll(async () => {
  await cli.ok("init");
  await serve();
}, 120_000);

describe("single calls that a gateway served", () => {
  it("are a unit each, in training, in the judge's rows and in a replay store", async () => {
    const [trained] = await cli.json(`train auto --id second --feedback solved --out ${policy}`);
    expect(trained.units).toBe(trained.rows);
    expect(trained.rows + trained.heldBack).toBe(CALLS);
    expect(trained.rows).toBeGreaterThan(CALLS / 2);
    const [{ rows, units, contenders }] = await cli.json(`evaluate --checkpoint ${policy} --feedback solved`);
    expect([rows, units]).toEqual([trained.heldBack, trained.heldBack]);
    // The propensities are the gateway's own: nothing speaks against them.
    expect(contenders.flatMap(({ reasons }: { reasons: string[] }) => reasons)).toEqual([]);
    // The batch holds the rows of the train part, by the same units.
    const [{ batch }] = await cli.json(`batch show ${trained.batches[0]}`);
    expect(batch.totals.rows).toBe(trained.rows);
    const store = join(cli.folder, "store");
    await cli.ok(`replay write ${store} --feedback solved`);
    const [stored] = await cli.json(
      `train ucb --id stored --replay ${store} --out ${join(cli.folder, "stored")}`,
    );
    expect([stored.rows, stored.units]).toEqual([trained.rows, trained.rows]);
  }, 60_000);

  it("are judged by the declared price of the choice where no cost of the call is recorded", async () => {
    const asked = `gate --checkpoint ${policy} --feedback solved --epsilon-quality 0.05 --epsilon-cost 0.005 --baseline behaviour`;
    const { code, out, err } = await cli.run(asked);
    expect([code, err]).toEqual([0, expect.not.stringContaining("no-cost")]);
    expect(out + err).toContain("cost is the declared price of the choice, in US dollars");
    const [{ candidates }] = await cli.json(asked);
    const cost = candidates[0].checks.find(({ measure }: { measure: string }) => measure === "cost");
    // Half of the prompts go to each: as the log, 0.0105 on average.
    expect(cost.candidate).toBeGreaterThan(0.009);
    expect(cost.candidate).toBeLessThan(0.012);
    await cli.ok(
      `train ridge --id thrifty --feedback solved --cost-weight 100 --out ${join(cli.folder, "thrifty")}`,
    );
  }, 60_000);
});
