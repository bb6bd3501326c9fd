import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { encodeWire, PolicyRevision } from "../../src/contract/index.ts";
import { readCheckpoint } from "../../src/policy/index.ts";
import { Cli, lines } from "../support/cli.ts";
import { draftWire, makeRevision, stepWire, weightsOf } from "../support/shelf.ts";

const revision = (n: number) => ({ id: `router-r${n}`, digest: weightsOf(`router-r${n}`) });
const REVISIONS = [1, 9].map((n) =>
  encodeWire(
    PolicyRevision,
    makeRevision(`router-r${n}`, { family: "router" as never, number: BigInt(n) }).record,
  ),
);

interface Plan {
  revision?: number;
  chosen?: 0 | 1;
  reward?: number | null;
  ending?: object;
}

/** A decision between small (3/4) and large (1/4), each its own task. */
function decision(name: string, plan: Plan = {}): object {
  const { chosen = 0, reward = 1, ending = { kind: "terminal" } } = plan;
  const step = { revision: revision(plan.revision ?? 9), chosen, reward };
  return draftWire(name, { task: { id: `task-${name}` }, ending, streams: [stepWire({ step })] });
}

async function bookOf(...records: object[]): Promise<Cli> {
  const cli = new Cli();
  await cli.ok("init");
  await cli.ok(`artifact import ${cli.file("all.jsonl", lines(...REVISIONS, ...records))}`);
  return cli;
}

const many = (count: number, make: (i: number) => object) => Array.from({ length: count }, (_, i) => make(i));

describe("of 20 infrastructure failures and 20 rollouts that a verdict calls stale", () => {
  const ending = { kind: "failed", owner: "infrastructure", message: "out of disk" };
  const all = [
    ...many(20, (i) => decision(`failed-${i}`, { ending })),
    ...many(20, (i) => decision(`stale-${i}`, { revision: 1 })),
  ];

  it("neither a batch nor a learner nor a store takes any, and each says why", async () => {
    const cli = await bookOf(...all);
    await cli.ok("artifact admit --target router-r9 --drift 3/5");
    const reasons = "failed-infrastructure 20, stale 20";
    const out = join(cli.folder, "out");
    for (const words of [
      "batch assemble --target router-r9 --level step --advantage none",
      `train ucb --out ${out} --id new`,
      `train bc --out ${out} --id new`,
    ]) {
      const { code, err } = await cli.run(words);
      expect([words, code, err]).toEqual([words, 1, expect.stringContaining(reasons)]);
    }
    expect(await cli.run(`replay write ${out}`)).toMatchObject({ code: 1 });
    const [exported] = await cli.json(`data export --out ${out}.jsonl`);
    expect(exported).toMatchObject({ rows: 0, admitted: [{ considered: 40, admitted: 0 }] });
  });

  it("without a verdict steps have no age limit: batch and learners take the 20 that did not fail", async () => {
    const cli = await bookOf(...all);
    const [{ batch }] = await cli.json("batch assemble --target router-r9 --level step --advantage none");
    expect(batch.totals.rows).toBe(20);
    const [trained] = await cli.json(`train ucb --out ${join(cli.folder, "p")} --id new --split all`);
    expect(trained).toMatchObject({ rows: 20 });
  });
});

describe("a bandit's state in a book", () => {
  const armsOf = (cli: Cli, name: string) => {
    const { model } = readCheckpoint(join(cli.folder, name));
    const { counts, sums } = model.tensors;
    return model.arms.map((id, a) => [id, counts!.data[a], sums!.data[a]]);
  };
  const train = (cli: Cli, name: string, more = "") =>
    cli.json(`train ucb --out ${join(cli.folder, name)} --id ${name} --split all ${more}`.trim());

  it("gives back what a later verdict rejects, and counts again what a later label changes", async () => {
    const cli = await bookOf(
      decision("good"),
      decision("bad", { reward: 0 }),
      decision("far", { chosen: 1, revision: 1 }),
      decision("open", { chosen: 1, reward: null }),
    );
    const [first] = await train(cli, "one");
    expect(first).toMatchObject({ rows: 3, added: 3 });
    expect(armsOf(cli, "one")).toEqual([
      ["huge", 0, 0],
      ["large", 1, 1],
      ["small", 2, 1],
    ]);
    await cli.ok("artifact admit far --target router-r9 --drift 3/5");
    await cli.ok("feedback open --name solved --value 4");
    const [second] = await train(cli, "two", "--feedback solved");
    expect(second).toMatchObject({ rows: 3 });
    expect(armsOf(cli, "two")).toEqual([
      ["huge", 0, 0],
      ["large", 1, 4],
      ["small", 2, 1],
    ]);
    // Without the feedback the rejected rollout is gone from the old state too.
    expect((await train(cli, "three"))[0]).toMatchObject({ rows: 2 });
    expect(armsOf(cli, "three")[1]).toEqual(["large", 0, 0]);
    expect((await cli.run("verify")).code).toBe(0);
  });

  it("names the batch of every part of it, and grows by one batch of what is new", async () => {
    const cli = await bookOf(...many(6, (i) => decision(`early-${i}`)));
    const [first] = await train(cli, "one");
    await cli.ok(`artifact import ${cli.file("more.jsonl", lines(decision("late", { chosen: 1 })))}`);
    const [second] = await train(cli, "two");
    expect(second).toMatchObject({ rows: 7, added: 1 });
    expect(second.batches).toHaveLength(2);
    expect(second.batches).toEqual(expect.arrayContaining(first.batches));
    const { training } = readCheckpoint(join(cli.folder, "two")).revision.record;
    expect(training!.batches).toEqual(second.batches);
    const [walked] = await cli.json("verify two");
    expect(walked.reached).toMatchObject({ batches: expect.arrayContaining(second.batches), rollouts: 7 });
    // Nothing new: nothing is cut, and a linear bandit learns from the batches there are.
    expect((await train(cli, "three"))[0]).toMatchObject({ added: 0, batches: second.batches });
    const [linear] = await cli.json(`train linucb --out ${join(cli.folder, "lin")} --id lin --split all`);
    expect(linear.batches).toEqual(second.batches);
  });
});

it("a policy learned from a book is the same however often it is learned, and whatever else is sealed meanwhile", async () => {
  const cli = await bookOf(
    ...many(30, (i) => decision(`d-${i}`, { chosen: i % 3 === 0 ? 1 : 0, reward: i % 2 })),
  );
  const clone = async (name: string) =>
    (await cli.json(`train bc --out ${join(cli.folder, name)} --id ${name} --split all`))[0];
  const [one, two] = [await clone("one"), await clone("two")];
  expect(two).toMatchObject({ weights: one.weights, batches: one.batches, data: one.data });
});
