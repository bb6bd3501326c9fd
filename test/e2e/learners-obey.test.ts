import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parseId } from "../../src/base/index.ts";
import type { Claim } from "../../src/collect/queue/queue.ts";
import { claimId } from "../../src/collect/rollout/work/work-item.ts";
import { encodeWire, nameRevision, PolicyRevision, Receipt, seal } from "../../src/contract/index.ts";
import { rolloutIdFor } from "../../src/contract/rollout/rollout.ts";
import { gateCheckpoints, openBook, trainPolicy, verifyBook } from "../../src/index.ts";
import { judgeCandidates } from "../../src/loop/candidates.ts";
import type { LearnerConfig } from "../../src/loop/learner.ts";
import { readCheckpoint } from "../../src/policy/index.ts";
import { Cli, lines } from "../support/cli.ts";
import { draftWire, makeRevision, stepWire, weightsOf } from "../support/shelf.ts";
import { assignment, rolloutFor } from "../support/worker-server.ts";

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

/** A decision between small (3/4) and large (1/4), each in its own task. */
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

const many = <T>(count: number, make: (i: number) => T) => Array.from({ length: count }, (_, i) => make(i));

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
      `data export --out ${out}.jsonl`,
    ]) {
      const { code, err } = await cli.run(words);
      expect([words, code, err]).toEqual([words, 1, expect.stringContaining(reasons)]);
    }
    expect(await cli.run(`replay write ${out}`)).toMatchObject({ code: 1 });
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
    // Without the feedback the rejected rollout is also gone from the old state.
    expect((await train(cli, "three"))[0]).toMatchObject({ rows: 2 });
    expect(armsOf(cli, "three")[1]).toEqual(["large", 0, 0]);
    expect((await cli.run("verify")).code).toBe(0);
  });

  it("takes each decision once, also after a quarantine that came and went", async () => {
    const cli = await bookOf(...many(3, (i) => decision(`d-${i}`)), decision("far", { revision: 1 }));
    expect((await train(cli, "one"))[0]).toMatchObject({ rows: 4 });
    await cli.ok("artifact admit far --target router-r9 --drift 0/9");
    await cli.ok(`artifact import ${cli.file("more.jsonl", lines(decision("new")))}`);
    expect((await train(cli, "two"))[0]).toMatchObject({ rows: 4 });
    await cli.ok(["artifact", "release", "far", "--reason", "a rare task"]);
    const [third] = await train(cli, "three");
    expect(third).toMatchObject({ rows: 5 });
    expect(armsOf(cli, "three")[2]).toEqual(["small", 5, 5]);
    const shown = await Promise.all(third.batches.map((batch: string) => cli.json(`batch show ${batch}`)));
    expect(shown.map(([each]) => each.batch.totals.rows).sort()).toEqual([1, 4]);
    expect((await cli.run("verify")).code).toBe(0);
  });

  it("counts a stream that is labelled after another one of its rollout", async () => {
    const step = (chosen: 0 | 1, reward: number | null) =>
      stepWire({ step: { revision: revision(9), chosen, reward } });
    const two = draftWire("two", { task: { id: "task-two" }, streams: [step(0, 1), step(1, null)] });
    const cli = await bookOf(decision("a"), decision("b", { reward: null, chosen: 1 }), two);
    await cli.ok("feedback b --name solved --value 0");
    expect((await train(cli, "one", "--feedback solved"))[0]).toMatchObject({ rows: 3 });
    await cli.ok("feedback two --name solved --value 5");
    expect((await train(cli, "two", "--feedback solved"))[0]).toMatchObject({ rows: 4, added: 1 });
    expect(armsOf(cli, "two").slice(1)).toEqual([
      ["large", 2, 5],
      ["small", 2, 2],
    ]);
  });

  it("never takes a second artifact of an assignment, also where the first is counted already", async () => {
    const cli = await bookOf(decision("plain"));
    const item = rolloutIdFor(assignment.digest, 0);
    const payload = { assignment: assignment.digest, sample: 0 };
    const claim = { item, worker: "worker-a", token: 1, attempt: 1, payload } as unknown as Claim;
    const streams = (chosen: 0 | 1, reward: number) => ({
      streams: [stepWire({ step: { revision: revision(9), chosen, reward } })],
    });
    const first = rolloutFor(claim, streams(0, 1));
    const second = rolloutFor({ ...claim, worker: "worker-b", token: 2, attempt: 2 }, streams(1, 7));
    const receipt = seal(Receipt, {
      ...{
        subject: first.content.digest,
        atMs: 5,
        claim: parseId(claimId(claim)),
        outcome: "accepted-exact",
      },
      ...{ signals: [], message: "accepted" },
    });
    await put(cli, assignment, ...first.blobs, receipt);
    expect((await train(cli, "one"))[0]).toMatchObject({ rows: 2 });
    await put(cli, ...second.blobs);
    await cli.ok(`artifact import ${cli.file("more.jsonl", lines(decision("new")))}`);
    const [next] = await train(cli, "two");
    expect(next).toMatchObject({ rows: 3, added: 1 });
    expect(armsOf(cli, "two").slice(1)).toEqual([
      ["large", 0, 0],
      ["small", 3, 3],
    ]);
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
    // Without new rollouts no batch is assembled. A linear bandit learns from the existing batches.
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

describe("a book", () => {
  it("does not take two policies of one name, and goes on as before", async () => {
    const cli = await bookOf(...many(4, (i) => decision(`d-${i}`)));
    const train = (out: string) => cli.run(`train ucb --out ${join(cli.folder, out)} --id same --split all`);
    expect((await train("a")).code).toBe(0);
    // The same policy gives the same record, for any checkpoint folder.
    expect((await train("again")).code).toBe(0);
    expect((await cli.run("verify same")).code).toBe(0);
    const [a, again] = ["a", "again"].map((name) => readCheckpoint(join(cli.folder, name)).revision.digest);
    expect(again).toBe(a);
    await cli.ok(`artifact import ${cli.file("more.jsonl", lines(decision("new", { chosen: 1 })))}`);
    const { code, err } = await train("b");
    expect([code, err]).toEqual([1, expect.stringContaining("another --id")]);
    expect(existsSync(join(cli.folder, "b"))).toBe(false);
    for (const words of ["verify", "batch assemble --target router-r9 --level step --advantage none"])
      expect((await cli.run(words)).code).toBe(0);
  });

  it("with two contents of one rollout id gives one of them to everybody", async () => {
    const cli = await bookOf(
      ...many(3, (i) => decision(`d-${i}`)),
      ...many(3, (i) => decision(`d-${i}`, { chosen: 1 })),
    );
    const [{ batch, ledger }] = await cli.json(
      "batch assemble --target router-r9 --level step --advantage none",
    );
    expect(batch.totals.rows).toBe(3);
    expect(ledger.reasons).toMatchObject([{ reason: "duplicate-rollout", artifacts: 3 }]);
    const out = join(cli.folder, "out");
    expect((await cli.json(`train ucb --out ${out} --id p --split all`))[0]).toMatchObject({ rows: 3 });
    expect((await cli.json(`data export --out ${out}.jsonl`))[0]).toMatchObject({ rows: 3 });
    expect((await cli.json(`replay write ${out}-store`))[0]).toMatchObject({ chains: 3 });
  });

  it.each([[""], [" --parent router-r9"]])(
    "seals a policy that it knew only by its name%s",
    async (parent) => {
      const rows = many(4, (i) => decision(`d-${i}`));
      const train = (cli: Cli) =>
        cli.json(`train ucb --out ${join(cli.folder, "p")} --id p --split all --policy router${parent}`);
      const [{ weights }] = await train(await bookOf(...rows));
      const named = nameRevision(parseId("router"), { id: parseId("p"), digest: weights });
      const cli = await bookOf(encodeWire(PolicyRevision, named.record) as object, ...rows);
      expect(await train(cli)).toMatchObject([{ weights }]);
      const { revision } = readCheckpoint(join(cli.folder, "p"));
      expect(revision.record.producedAtMs).toBeGreaterThan(0);
      const book = await openBook(cli.book);
      try {
        expect(await book.store.has(weights)).toBe(true);
        expect(await book.store.has(revision.digest)).toBe(true);
      } finally {
        await book.close();
      }
    },
  );

  it("of decisions among other candidates than the policy's leads a training run to a refusal", async () => {
    const cli = await bookOf(...many(40, (i) => decision(`d-${i}`, { chosen: i % 4 === 0 ? 1 : 0 })));
    const rows = many(8, (i) => `${i % 2 === 0 ? "a" : "b"},1,0.5,question ${i}`);
    const csv = cli.file("other.csv", ["model,reward,share,prompt", ...rows, ""].join("\n"));
    const [data, folder] = [join(cli.folder, "other.jsonl"), join(cli.folder, "p")];
    const map = "model=model,reward=reward,propensity=share,prompt=prompt";
    await cli.ok(`data import ${csv} --map ${map} --family router --out ${data}`);
    await cli.ok(`train ucb --data ${data} --out ${folder} --id p --split all`);
    const config = { judge: { family: "router" }, gate: { baseline: "behaviour" } };
    const book = await openBook(cli.book);
    try {
      const learner = { kind: "ucb" } as LearnerConfig;
      expect(await judgeCandidates(book, [{ learner, id: "p", folder }], config)).toEqual({
        step: {
          ...{ state: "judged", outcome: "refuse" },
          reasons: [expect.stringContaining(`${folder} knows none of its candidates (`)],
        },
      });
    } finally {
      await book.close();
    }
  });

  it("whose rollouts were imported again as other tasks teaches none that it judges by", async () => {
    const reward = (i: number) => ({ chosen: (i % 3 === 0 ? 1 : 0) as 0 | 1, reward: i % 2 });
    const cli = await bookOf(
      ...many(60, (i) => decision(`d-${i}`, reward(i))),
      ...many(60, (i) => ({ ...decision(`d-${i}`, reward(i)), task: { id: `other-${i}` } })),
    );
    const out = join(cli.folder, "out");
    const [trained] = await cli.json(`train bc --out ${out} --id p`);
    expect(trained.rows + trained.heldBack).toBe(60);
    expect((await cli.run(`verify ${trained.batches[0]}`)).code).toBe(0);
  });
});

it("a drift budget is about the target of the batch, whatever an earlier verdict was about", async () => {
  const cli = new Cli();
  const revisions = [1, 3, 20].map((n) =>
    encodeWire(PolicyRevision, makeRevision(`r${n}`, { number: BigInt(n) }).record),
  );
  const old = draftWire("old", {}, { revision: { id: "r1", digest: weightsOf("r1") } });
  await cli.ok("init");
  await cli.ok(`artifact import ${cli.file("all.jsonl", lines(...revisions, old))}`);
  await cli.ok("artifact admit --target r3 --freshness default");
  const assemble = (target: string) => cli.run(`batch assemble --target ${target} --level token`);
  expect((await assemble("r3")).code).toBe(0);
  expect(await assemble("r20")).toMatchObject({ code: 1, err: expect.stringContaining("stale 1") });
});

it("a floor is followed from its calibration rows, whatever else is unlabelled", async () => {
  const cli = await bookOf(
    ...many(120, (i) => decision(`d-${i}`, { chosen: i % 3 === 0 ? 1 : 0, reward: i % 2 })),
    ...many(120, (i) => ({ ...decision(`open-${i}`, { reward: null }), task: { id: `task-d-${i}` } })),
  );
  const out = join(cli.folder, "p");
  await cli.ok(`train bc --out ${out} --id p --floor-risk 0.2`);
  const { out: said } = await cli.run(`evaluate --checkpoint ${out} --json`);
  expect(JSON.parse(said).promise).toMatchObject({ followed: true });
});

it("a verdict on rows of one book can be kept in another, which then verifies", async () => {
  const cli = await bookOf(
    ...many(60, (i) => decision(`d-${i}`, { chosen: i % 3 === 0 ? 1 : 0, reward: i % 2 })),
  );
  const [from, to] = [await openBook(cli.book), await openBook(join(cli.folder, "other"), { create: true })];
  try {
    await trainPolicy(from, { learner: { kind: "ucb" }, id: "p", out: join(cli.folder, "p") });
    const { sealed } = await gateCheckpoints(from, {
      candidates: [join(cli.folder, "p")],
      epsilonCost: null,
      keepIn: to,
    });
    expect(sealed).toBe(true);
    for (const book of [from, to]) expect((await verifyBook(book)).report.problems).toEqual([]);
  } finally {
    await from.close();
    await to.close();
  }
});

describe("what is asked for and is not there", () => {
  it("is named, with what there is: a family, a learner, a group", async () => {
    const { group: _, ...alone } = decision("alone") as { group?: string };
    const cli = await bookOf(alone);
    const out = join(cli.folder, "out");
    for (const words of [
      `train ucb --family nosuch --out ${out} --id p`,
      `data export --family nosuch --out ${out}.jsonl`,
      `replay write ${out} --family nosuch`,
    ])
      expect(await cli.run(words)).toMatchObject({
        code: 1,
        err: expect.stringContaining("of family nosuch. It has router"),
      });
    expect(existsSync(`${out}.jsonl`)).toBe(false);
    expect(await cli.run("batch assemble --target router-r9 --level step")).toMatchObject({
      code: 1,
      err: expect.stringContaining("--advantage none"),
    });
    const book = await openBook(cli.book);
    const learner = { kind: "linucbb" } as never;
    await expect(trainPolicy(book, { learner, id: "p" })).rejects.toThrow("ucb, linucb, thompson, bc");
    await book.close();
    expect(await cli.json("batch show")).toEqual([]);
  });
});

it("a log that tells the probability of each choice alone teaches and judges, from book and store alike", async () => {
  const cli = new Cli();
  await cli.ok("init");
  const rows = many(8, (i) => `${i % 2},${i % 2},${i % 2 === 0 ? 0.75 : 0.25}`);
  const log = cli.file("log.csv", ["arm,score,p", ...rows].join("\n"));
  const columns = "action=arm,reward=score,propensity=p";
  await cli.ok(`data import ${log} --format csv --map ${columns} --data-source real`);
  const store = join(cli.folder, "store");
  expect((await cli.json(`replay write ${store}`))[0]).toMatchObject({ chains: 8 });
  expect(await cli.json(`replay validate ${store}`)).toMatchObject([{ valid: true }]);
  for (const [name, from] of [
    ["from-book", ""],
    ["from-store", `--replay ${store}`],
  ]) {
    const words = `train ucb --out ${join(cli.folder, name!)} --id ${name} --split all ${from}`.trim();
    expect((await cli.json(words))[0]).toMatchObject({ rows: 8 });
    const { model } = readCheckpoint(join(cli.folder, name!));
    expect([...model.tensors.sums!.data]).toEqual([0, 4]);
  }
  const [batch] = await cli.json("batch show");
  expect((await cli.run(`batch verify ${batch.digest}`)).code).toBe(0);
});

async function put(cli: Cli, ...blobs: readonly { kind: string; bytes: Uint8Array }[]): Promise<void> {
  const book = await openBook(cli.book);
  for (const { kind, bytes } of blobs) book.store.put(kind, bytes);
  await book.store.flush();
  await book.close();
}
