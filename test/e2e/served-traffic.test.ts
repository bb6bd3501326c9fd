/** The second policy, learned from served traffic: chat calls for `auto` without a rollout, feedback, then train,
 *  evaluate and gate. */
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

/** Strong is right on proofs, cheap on everything else. No prompt repeats. */
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
    // The propensities are the gateway's own, so evaluate has no objection to them.
    expect(contenders.flatMap(({ reasons }: { reasons: string[] }) => reasons)).toEqual([]);
    // The batch holds the rows of the train split, which evaluate cuts by the same units.
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
    // Half of the prompts go to each model, as in the log: 0.0105 on average.
    expect(cost.candidate).toBeGreaterThan(0.009);
    expect(cost.candidate).toBeLessThan(0.012);
    await cli.ok(
      `train ridge --id thrifty --feedback solved --cost-weight 100 --out ${join(cli.folder, "thrifty")}`,
    );
  }, 60_000);

  it("are used together with an imported log that was given their family, and the refusal says how", async () => {
    const log = cli.file(
      "log.csv",
      ["question,model,p,score", ...Array.from({ length: 40 }, (_, i) => `Add ${i},cheap,0.5,1`)].join("\n"),
    );
    const map = "--map prompt=question,model=model,propensity=p,reward=score --actions cheap,strong";
    const imported = `data import ${log} ${map} --data-source real`;
    const train = `train ridge --id both --feedback solved --out ${join(cli.folder, "both")}`;
    await cli.ok(imported);
    const refused = await cli.run(train);
    expect([refused.code, refused.err]).toEqual([
      1,
      expect.stringContaining(
        "of the families imported, router. Choose one with --family. To use both together, import the log again with `data import … --family router --again`, then choose --family router. [policy-family-mismatch]",
      ),
    ]);
    expect((await cli.run(`${imported} --family router`)).err).toContain("[imported-otherwise]");
    await cli.ok(`${imported} --family router --again`);
    const [{ rows, heldBack }] = await cli.json(`${train} --family router`);
    expect(rows + heldBack).toBe(CALLS + 40);
  }, 60_000);
});
