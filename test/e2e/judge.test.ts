import { cpSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import type { RoutingRow } from "../../src/convert/routing-jsonl.ts";
import { Cli, lines } from "../support/cli.ts";
import { routingWorld, truth } from "../support/routing-world.ts";

const WORLD = routingWorld(3000, 3);

/** A dataset and two policies trained on it: a clone with a floor set by --floor-risk, and a bandit. */
async function train(cli: Cli, rows: readonly RoutingRow[]) {
  const data = cli.file("decisions.jsonl", lines(...rows));
  const promise = "--floor-risk 0.1 --propensity-floor 0.4";
  const [made] = await cli.json(`train bc --data ${data} --out ${join(cli.folder, "bc")} --id bc ${promise}`);
  const bandit = join(cli.folder, "bandit");
  await cli.ok(`train linucb --data ${data} --out ${bandit} --id bandit --alpha 0.1`);
  return { folder: cli.folder, made };
}

let onWorld: ReturnType<typeof train> | undefined;
afterAll(async () => {
  if (onWorld !== undefined) rmSync((await onWorld).folder, { recursive: true, force: true });
});

/** Trains once; each test gets a copy. */
async function trained() {
  onWorld ??= train(new Cli({ whenDone: () => {} }), WORLD);
  const { folder, made } = await onWorld;
  const cli = new Cli();
  cpSync(folder, cli.folder, { recursive: true });
  return { cli, ...placesIn(cli), made };
}

const placesIn = ({ folder }: Cli) => ({
  data: join(folder, "decisions.jsonl"),
  bc: join(folder, "bc"),
  bandit: join(folder, "bandit"),
});

async function faultOf(cli: Cli, words: string): Promise<{ exit: number; code: string; message: string }> {
  const { code: exit, err } = await cli.run(`${words} --json`);
  const line = err.split("\n").find((each) => each.startsWith('{"error"'));
  return { exit, ...JSON.parse(line ?? '{"error":{}}').error };
}

describe("evaluate and gate on the command line", () => {
  it("judge by rows that training and calibration have not seen, and by no other", async () => {
    const { cli, data, bandit } = await trained();
    const [report] = await cli.json(`evaluate --data ${data} --checkpoint ${bandit}`);
    const { rows, leftOut, split } = report.data;
    expect(rows + leftOut.train + leftOut.calibration).toBe(WORLD.length);
    expect(split).toEqual({ unit: "task", salt: "rollbook", shares: [0.6, 0.2, 0.2] });
    const learned = report.contenders[0].values.quality;
    const [{ low, high }] = learned.intervals;
    expect(low).toBeLessThan(truth((hard) => (hard ? 1 : 0)).quality);
    expect(high).toBeGreaterThan(truth((hard) => (hard ? 1 : 0)).quality);
    expect(report).toMatchObject({ certification: "certified", liveness: { live: 1 } });
    const [again] = await cli.json(`evaluate --data ${data} --checkpoint ${bandit}`);
    expect(again).toEqual(report);
    const all = join(cli.folder, "all");
    await cli.ok(`train ucb --data ${data} --out ${all} --id all --split all`);
    const fault = await faultOf(cli, `evaluate --data ${data} --checkpoint ${all}`);
    expect(fault).toMatchObject({ exit: 1, code: "empty-split" });
    expect(fault.message).toMatch(/3000 are for training or were trained on/);
    // Later rows can judge the policy.
    const later = routingWorld(4000, 3).slice(3000);
    const fresh = cli.file("later.jsonl", lines(...later));
    const [judged] = await cli.json(`evaluate --data ${fresh} --checkpoint ${all}`);
    expect(judged.data.rows).toBe(1000);
  });

  it("seal a floor with its promise in the checkpoint, and show the realised risk", async () => {
    const { cli, data, bc, made } = await trained();
    expect(made.promise).toMatchObject({
      alpha: 0.1,
      feedback: "bandit",
      propensityFloor: 0.4,
      measure: "quality",
    });
    expect(made.promise.bound).toBeLessThanOrEqual(0.1);
    const [report] = await cli.json(`evaluate --data ${data} --checkpoint ${bc}`);
    expect(report.router).toMatchObject({ floor: made.promise.floor, floorFrom: "promise" });
    expect(report.promise).toMatchObject({ alpha: 0.1, followed: true });
    expect(report.promise.interval.low).toBeLessThan(0.1);
    expect(report.data.leftOut.calibration).toBe(made.promise.units);
    const text = await cli.ok(`evaluate --data ${data} --checkpoint ${bc} --verbose`);
    expect(text).toMatch(
      /--floor-risk: the policy decides at or above floor .* from the table is at most 0\.1\. On these rows it is /,
    );
    expect(text.indexOf("effective sample size")).toBeLessThan(text.indexOf("POLICY"));
    // The promise holds only for its own floor.
    const [other] = await cli.json(`evaluate --data ${data} --checkpoint ${bc} --floor 0.3`);
    expect(other.promise).toBeUndefined();
    const dead = await cli.run(`evaluate --data ${data} --checkpoint ${bc} --floor 1`);
    expect(dead.err).toMatch(
      /warning: the policy never decides: its highest confidence is 0\.\d+, the floor is 1/,
    );
    writeFileSync(
      join(bc, "floor.json"),
      readFileSync(join(bc, "floor.json"), "utf8").replace('"floor":0.', '"floor":0.0'),
    );
    for (const words of [`evaluate --checkpoint ${bc}`, `gate --candidate ${bc}`]) {
      const forged = await faultOf(cli, `${words} --data ${data}`);
      expect(forged).toMatchObject({ exit: 1, code: "digest-mismatch" });
      expect(forged.message).toMatch(
        /floor\.json promises a floor of 0\.0\d+, its own calibration rows give 0\.\d+/,
      );
    }
  });

  it("name the propensity floor and the units that a promise would take, where no floor keeps it", async () => {
    const cli = new Cli();
    const data = cli.file("few.jsonl", lines(...routingWorld(300, 3)));
    const out = await cli.ok(`train bc --data ${data} --out ${cli.folder}/p --id p --floor-risk 0.1`);
    expect(out).toMatch(
      /no confidence floor keeps the loss within 0\.1, .* has \d+ tasks, and at least 199 are needed \(more if .*\)\. With --propensity-floor 0\.4, 24 can be enough\. Use it if .* below 0\.4, as in this log\.$/m,
    );
    // The log is too small for a comparison, too, but a larger one alone would not give the policy a floor.
    const { code, out: verdict, err } = await cli.run(`evaluate --data ${data} --checkpoint ${cli.folder}/p`);
    expect([code, err]).toEqual([
      1,
      "error: p never decides: training found no confidence floor that keeps its promised risk. Train it again with a higher --floor-risk or more rows. [no-floor]\n",
    ]);
    expect(verdict).toContain("verdict: p never decides");
    const asked = await cli.ok(`route ask --checkpoint ${cli.folder}/p hi`);
    expect(asked).toContain("The static table decided");
    expect(asked).toContain("no confidence floor keeps the promised risk of revision p");
    expect(asked).not.toContain("floor of 0");
  });

  it("say that a policy changes no decision, and how many gates have seen the rows", async () => {
    const cli = new Cli();
    await cli.ok("init");
    await cli.ok(`data import ${cli.file("log.jsonl", lines(...routingWorld(500, 3)))}`);
    const folder = join(cli.folder, "ucb");
    await cli.ok(`train ucb --out ${folder} --id ucb`);
    const words = `gate --candidate ${folder} --baseline ${folder} --epsilon-quality 0.05`;
    const first = await cli.run(words);
    expect(first).toMatchObject({ code: 0 });
    expect(first.out).toContain("PASS: ucb, which changes no decision of ucb");
    expect(first.out).toMatch(/the judge split, and the calibration split, because no floor was set on it/);
    expect(first.out).not.toContain("WARNING");
    // The bound of quality must not be below the margin, that of cost not above it.
    expect(first.out).toMatch(/ucb +quality .* at least -0\.05 +clears\n *ucb +cost .* at most 0 +clears/);
    expect(first.err).toContain("500 of 500 rollouts used");
    // The log grows, and the user tries another margin.
    await cli.ok(`data import ${cli.file("more.jsonl", lines(...routingWorld(520, 3).slice(500)))}`);
    const second = await cli.ok(`${words} --epsilon-cost 1`);
    expect(second).toMatch(
      /WARNING: these rows have now judged at least 2 policies \(a policy judged again counts again\), but the bound allows for 1, so this PASS is weaker than alpha says\. The verdict stands\. /,
    );
    // The repetition is a gate of its own, and this one is sealed.
    expect(second).toContain(
      "run the gate again with --candidates-tried 3 (2 in sealed verdicts, 1 in the next gate; add the policies of earlier dry runs), or use --method confidence-sequence with --cost-range=LOW..HIGH",
    );
    const whole = await cli.run(`${words} --total-reward --dry-run`);
    expect(whole.out).toContain("use --method confidence-sequence with --quality-range=LOW..HIGH");
    // A refusal before any figure names the same range: cost would be judged.
    const few = `gate --data ${cli.file("few.jsonl", lines(...routingWorld(60, 3)))} --candidate ${folder}`;
    await cli.run(few);
    const refused = await cli.run(`${few} --epsilon-cost 1`);
    expect(refused.out).not.toContain("BOUND");
    expect(refused.out).toContain("or use --method confidence-sequence with --cost-range=LOW..HIGH\n");
    expect((await cli.run(`${few} --quality-only`)).out).toContain("or use --method confidence-sequence\n");
    const tens = routingWorld(60, 3).map((row) => ({
      ...row,
      reward: 10,
      state: { ...row.state, terms: {} },
    }));
    const wide = `gate --data ${cli.file("tens.jsonl", lines(...tens))} --candidate ${folder} --quality-only`;
    await cli.run(wide);
    expect((await cli.run(`${wide} --epsilon-quality 1`)).out).toContain(
      "or use --method confidence-sequence with --quality-range=LOW..HIGH\n",
    );
    // A gate with two policies is one gate, and two policies to count.
    const two = await cli.run(`${words} --epsilon-cost 3 --candidate ${folder}`);
    expect(two.out).toContain("these rows have now judged at least 4 policies");
    expect(two.out).toContain("again with --candidates-tried 6");
    const fewer = await cli.run(`${words} --epsilon-cost 1 --candidates-tried 4 --dry-run`);
    expect(fewer.out).toContain(
      "judged at least 5 policies (a policy judged again counts again), but the bound allows for 4, so this PASS is weaker than alpha says. For a correct bound, run the gate again with --candidates-tried 6 (4 in sealed verdicts, 1 in this dry run, 1 in the next gate; add the policies of earlier dry runs),",
    );
    const counted = await cli.run(`${words} --epsilon-cost 1 --candidates-tried 5 --dry-run`);
    expect(counted.out).not.toContain("WARNING");
    const sequence = "--method confidence-sequence --quality-only --propensity-floor 0.4";
    expect((await cli.run(`${words} ${sequence}`)).out).not.toContain("WARNING");
    // A dry run counts the sealed gates before it, not the dry runs.
    const next =
      "--candidates-tried 7 (5 in sealed verdicts, 1 in this dry run, 1 in the next gate; add the policies of earlier dry runs)";
    const told = await cli.run(`${words} --epsilon-cost 2 --dry-run`);
    expect(told.out).toContain(`WARNING: with this dry run, these rows have judged at least 6 policies`);
    expect(told.out).toContain(`run the gate again with ${next}, or use`);
    const dry = await cli.run(`${words} --epsilon-cost 2 --dry-run --json`);
    expect(dry.err).toContain(
      `note: --dry-run seals no verdict: nothing is released. The book does not count this dry run. For the next gate on these rows, use ${next}\n`,
    );
    const afterDryRun = await cli.run(`${words} --epsilon-cost 2 --dry-run --candidates-tried 7`);
    expect(afterDryRun.err).toContain("--candidates-tried 8 (7 counted so far, 1 in the next gate)\n");
    expect((await cli.run(`${words} ${sequence} --dry-run`)).err).toContain("nothing is released.\n");
    expect(JSON.parse(dry.out)).toMatchObject({ outcome: "pass", sealed: false, earlier: 4 });
    expect((await cli.json(`${words} --epsilon-cost 2`))[0]).toMatchObject({ earlier: 4, changed: [0] });
    // A verdict keeps the count that its user stated, with the dry runs.
    await cli.ok(`${words} --epsilon-cost 2 --candidates-tried 12`);
    expect(await cli.ok(`${words} --epsilon-cost 2`)).toContain("have now judged at least 13 policies");
  });

  it("say that a PASS in a book is the release, and release nothing with --dry-run", async () => {
    const cli = new Cli();
    await cli.ok("init");
    await cli.ok(`data import ${cli.file("log.jsonl", lines(...routingWorld(500, 3)))}`);
    const folder = join(cli.folder, "ucb");
    await cli.ok(`train ucb --out ${folder} --id ucb`);
    const router = "router: { checkpoint: released, candidates: { cheap: {}, strong: {} } }\n";
    const ask = `route ask --config ${cli.file("router.yaml", router)} --prompt Prove`;
    const words = `gate --checkpoint ${folder} --baseline ${folder} --epsilon-quality 0.05`;
    const RELEASED =
      "note: gateways on this book with `checkpoint: released` and the judged settings now serve ucb.";
    const dry = await cli.run(`${words} --dry-run`);
    expect([dry.code, dry.err]).toEqual([0, expect.not.stringContaining(RELEASED)]);
    expect(dry.out).toMatch(/^verdict \w+, not sealed$/m);
    expect((await cli.run(`${ask} --json`)).out).not.toContain('"serving":"policy"');
    expect((await cli.run(words)).err).toContain(RELEASED);
    expect((await cli.json(ask))[0].status).toMatchObject({ serving: "policy", policy: { id: "ucb" } });
    // The released policy is known once it serves, and so are the fields that it reads.
    expect((await cli.run(`${ask} --field tols=2`)).err).toMatch(/Did you mean tools\?.*\[unknown-field\]/s);
    expect((await cli.run(`${ask} --field tools=2`)).code).toBe(0);
    // Judged without exploration, and so served: a configuration without it is judged with another.
    const judged = await cli.run(
      `evaluate --checkpoint ${folder} --router ${join(cli.folder, "router.yaml")}`,
    );
    expect(judged.err).toMatch(
      /^note: \S+router\.yaml sets no exploration, so the policy is judged with 0\.02\./m,
    );
    expect(
      (await cli.json(ask))[0].candidates.map((one: { probability: number }) => one.probability),
    ).toContain(1);
    const help = (await cli.run("gate --help")).out.replaceAll(/\s+/g, " ");
    expect(help).toContain("a PASS is the release: gateways with `checkpoint:");
  });

  it("name the baseline that a misspelt one may mean", async () => {
    const { cli, data, bandit } = await trained();
    const fault = (baseline: string) =>
      faultOf(cli, `gate --data ${data} --checkpoint ${bandit} --baseline ${baseline}`);
    expect((await fault("behavior")).message).toMatch(/--baseline behavior is neither .* mean behaviour\?$/);
    expect((await fault("Static")).message).toMatch(/mean static\?$/);
    for (const baseline of ["nowhere", "static-table"])
      expect((await fault(baseline)).message).toMatch(
        /is neither static .* nor behaviour .* nor an existing folder of a checkpoint\. Name one of them\.$/,
      );
  });

  it("say that a policy which was trained outside of the book is not served, and how it can be", async () => {
    const { cli, data, bandit } = await trained();
    await cli.ok("init");
    const { code, err } = await cli.run(
      `gate --data ${data} --checkpoint ${bandit} --baseline ${bandit} --epsilon-quality 0.05`,
    );
    expect([code, err]).toEqual([
      0,
      expect.stringMatching(
        /^warning: revision bandit passed the gate \(verdict \w+\), but the book has no copy of its checkpoint, .*\. Set router\.checkpoint to its folder, /m,
      ),
    ]);
    expect(err).not.toMatch(/now serve|artifact import/);
    expect(await cli.ok("verify")).toMatch(
      /^not in the book, so not checked:\n {2}policy bandit \(\w{12}\), named by gate verdict \w{12}$/m,
    );
    const [{ external, outside }] = await cli.json("verify");
    expect(outside).toHaveLength(external);
  });

  it("count a rollout without a reward as train does, in every split", async () => {
    const cli = new Cli();
    await cli.ok("init");
    const rows = routingWorld(300, 3).map((row, i) => (i % 50 === 0 ? { ...row, reward: null } : row));
    await cli.ok(`data import ${cli.file("log.jsonl", lines(...rows))}`);
    const folder = join(cli.folder, "ucb");
    const trained = await cli.run(`train ucb --out ${folder} --id ucb`);
    const line = "router (steps): 294 of 300 rollouts used; 6 excluded: unlabelled 6\n";
    expect(trained.err).toContain(line);
    const [, count] = /trained on (\d+) rows/.exec(trained.out)!;
    for (const words of ["evaluate", "gate --dry-run"]) {
      const { out, err } = await cli.run(`${words} --checkpoint ${folder}`);
      expect(err).toContain(line);
      expect(out).toContain(`left out: ${count} of the train split, 6 without a reward`);
    }
  });

  it("do not warn of unknown costs where only quality is judged", async () => {
    const cli = new Cli();
    const rows = routingWorld(600, 3).map((row, i) => {
      const { cost: _, ...terms } = row.state.terms;
      return i % 10 === 0 ? { ...row, state: { ...row.state, terms } } : row;
    });
    const data = cli.file("log.jsonl", lines(...rows));
    const folder = join(cli.folder, "ucb");
    await cli.ok(`train ucb --data ${data} --out ${folder} --id ucb`);
    const words = `--data ${data} --checkpoint ${folder}`;
    expect(await cli.ok(`evaluate ${words}`)).toMatch(/WARNING: no cost is known of \d+ of/);
    expect((await cli.run(`gate ${words} --quality-only`)).err).not.toContain("no cost is known");
  });

  it("read the probabilities of a target from a file, for rows of a book as for those of a dataset", async () => {
    const cli = new Cli();
    await cli.ok("init");
    const rows = routingWorld(500, 3);
    const data = cli.file("log.jsonl", lines(...rows));
    await cli.ok(`data import ${data}`);
    const written = (idOf: (id: string) => string) =>
      ["decision_id,cheap,strong", ...rows.map((row) => `${idOf(row.decision_id)},0.5,0.5`), ""].join("\n");
    const target = cli.file(
      "target.csv",
      written((id) => id),
    );
    const [ofData] = await cli.json(`evaluate --data ${data} --target-probabilities ${target}`);
    const [ofBook] = await cli.json(`evaluate --target-probabilities ${target}`);
    expect(ofBook.panels.reward.kind).toBe(ofData.panels.reward.kind);
    expect(ofBook.panels.reward.rows[0].value).toBeCloseTo(ofData.panels.reward.rows[0].value, 10);
    const exported = cli.file(
      "exported.csv",
      written((id) => `${id}/0/0`),
    );
    expect((await cli.json(`evaluate --target-probabilities ${exported}`))[0]).toEqual(ofBook);
    // The rows have a reward with terms, so its quality is a second measure.
    expect(await cli.ok(`evaluate --target-probabilities ${target}`)).toMatch(
      /: reward \S+ instead of [^;]+; quality \S+ instead of [^;]+; cost [^;]+\.$/m,
    );
    const few = cli.file("few.csv", "decision_id,probability\nd-none,0.5\n");
    expect((await faultOf(cli, `evaluate --target-probabilities ${few}`)).message).toMatch(
      /has no target probability for it\. .* as `rollbook data export` writes it/,
    );
    for (const table of ["probability\nd-0,", "probability\nd-0,half", "cheap,strong\nd-0,0.5,half"]) {
      const wrong = cli.file("wrong.csv", `decision_id,${table}\n`);
      expect((await faultOf(cli, `evaluate --target-probabilities ${wrong}`)).message).toMatch(
        /wrong\.csv:2: the column (probability|strong) holds no number\. Write/,
      );
    }
    const misnamed = cli.file("misnamed.csv", written((id) => id).replace("cheap,strong", "prob,weight"));
    expect((await faultOf(cli, `evaluate --target-probabilities ${misnamed}`)).message).toMatch(
      /misnamed\.csv has no target probability .* column probability .* or one column per candidate \(cheap, strong\)\. It has decision_id and: prob, weight\. Rename the columns\.$/,
    );
    const json = (of: (id: string) => object) =>
      cli.file("target.jsonl", lines(...rows.map(({ decision_id: id }) => ({ decision_id: id, ...of(id) }))));
    const even = json(() => ({ probabilities: { cheap: 0.5, strong: 0.5 } }));
    expect((await cli.json(`evaluate --target-probabilities ${even}`))[0]).toEqual(ofBook);
    const wrongLines: [object, RegExp][] = [
      [
        { cheap: 0.5, strong: 0.5 },
        /target\.jsonl:1: no target probability\. A line needs the object probabilities, with one number per candidate, or the number probability, .* It has \{"cheap":0\.5,"strong":0\.5\}\. Correct the line\.$/,
      ],
      [
        { probability: null },
        /target\.jsonl:1: no target probability\. .* It has \{"probability":null\}\. Correct/,
      ],
      [
        { probabilities: { cheap: "x" } },
        /target\.jsonl:1: .* It has \{"probabilities":\{"cheap":"x"\}\}\. Correct/,
      ],
      [
        { probabilities: { prob: 1 } },
        /target\.jsonl has no target probability for the candidates of decision .*\. The object probabilities needs one entry per candidate \(cheap, strong\)\. It has: prob\. Rename the entries\.$/,
      ],
    ];
    for (const [line, message] of wrongLines)
      expect((await faultOf(cli, `evaluate --target-probabilities ${json(() => line)}`)).message).toMatch(
        message,
      );
    expect((await faultOf(cli, "evaluate --target-probabilities nosuch.csv")).message).toMatch(
      /^--target-probabilities nosuch\.csv: there is no such file, and the rows have no number of this name .* Numeric fields: .*\. Features: .*\. Name the column/,
    );
    expect((await faultOf(cli, `evaluate --checkpoint c --target-probabilities ${few}`)).message).toContain(
      "--checkpoint and --target-probabilities both name the policy. Remove one of them.",
    );
    expect((await faultOf(cli, "evaluate")).message).toContain("no policy is named.");
  });

  it("pass with exit 0 and refuse with exit 1, sealed in the book and the same when reached again", async () => {
    const { cli, data, bandit, bc } = await trained();
    await cli.ok("init");
    const out = join(cli.folder, "verdict.json");
    const words = `gate --data ${data} --candidate ${bandit} --epsilon-quality 0.05`;
    const [verdict] = await cli.json(`${words} --out ${out}`);
    expect(verdict).toMatchObject({ outcome: "pass", passed: { id: "bandit" }, sealed: true });
    expect(verdict.rule).toMatchObject({ tried: 1, perCandidate: 0.05, correction: "bonferroni" });
    expect((await cli.json(words))[0].verdict).toBe(verdict.verdict);
    expect(JSON.parse(readFileSync(out, "utf8")).schema).toBe("rollbook.gate-verdict.v1");
    expect((await cli.run("verify")).code).toBe(0);
    const refused = await cli.run(`gate --data ${data} --candidate ${bc}`);
    expect(refused.code).toBe(1);
    expect(refused.out).toContain("REFUSE");
    expect(refused.err).toMatch(/bc: quality may be .* worse .*, and the margin is 0|bc: cost/);
    expect(refused.err).toMatch(
      /If you decided before you saw this result to accept a \w+.*, judge again with --epsilon-\w+.*\. A margin chosen/,
    );
    // With two candidates the error is shared, and the better candidate passes.
    const [both] = await cli.json(`gate --data ${data} --candidate ${bc} ${bandit} --epsilon-quality 0.05`);
    expect(both).toMatchObject({
      outcome: "pass",
      passed: { id: "bandit" },
      rule: { tried: 2, perCandidate: 0.025 },
    });
    const wide = `gate --data ${data} --candidate ${bc} ${bandit} --epsilon-quality 0.9 --epsilon-cost 9 --dry-run`;
    expect(await cli.ok(wide)).toMatch(
      /PASS: bandit, .*\. bc clears too; bandit is taken because its bound of quality is the best\n/,
    );
    const [against] = await cli.json(
      `gate --data ${data} --candidate ${bandit} --baseline ${bc} --epsilon-cost 1`,
    );
    expect(against.baseline).toMatchObject({ kind: "policy", revision: { id: "bc" } });
    const sequence = `gate --data ${data} --candidate ${bandit} --baseline behaviour --method confidence-sequence`;
    expect((await faultOf(cli, sequence)).message).toMatch(/--cost-range/);
    const [looked] = await cli.json(
      `${sequence} --propensity-floor 0.4 --cost-range 0..1 --epsilon-quality 0.3 --epsilon-cost 0.5`,
    );
    expect(looked.rule).toMatchObject({ method: "confidence-sequence", propensityFloor: 0.4 });
  });

  it("judge the total reward by one bound where asked, as logged or with a weight on cost", async () => {
    const { cli, data, bandit } = await trained();
    const gate = async (more: string) =>
      (await cli.json(`gate --data ${data} --candidate ${bandit} ${more}`))[0];
    const parts = await gate("--epsilon-quality 0.05 --epsilon-cost 1");
    const [quality, cost] = parts.candidates[0].checks;
    const logged = await gate("--total-reward --epsilon-quality 0.05");
    expect(logged).toMatchObject({ outcome: "pass", rule: { total: {}, epsilonCost: null } });
    expect(logged.candidates[0].checks).toMatchObject([{ measure: "reward" }]);
    for (const weight of [0, 0.5, 2]) {
      const total = await cli.run(
        `gate --data ${data} --candidate ${bandit} --total-reward --cost-weight ${weight} --epsilon-quality 0.05 --json`,
      );
      const { rule, candidates } = JSON.parse(total.out);
      expect(rule.total).toEqual({ costWeight: weight });
      expect(candidates[0].checks[0].difference).toBeCloseTo(
        quality.difference - weight * cost.difference,
        1,
      );
    }
    const text = await cli.ok(
      `gate --data ${data} --candidate ${bandit} --total-reward --epsilon-quality 0.05`,
    );
    expect(text).toContain("reward is the total as it was logged, with all its terms\n");
    expect((await cli.run(`gate --data ${data} --candidate ${bandit} --cost-weight 1`)).code).toBe(2);
  });

  it("end with one sentence that says better or not, by how much and how sure; figures on --verbose", async () => {
    const { cli, data, bandit } = await trained();
    const brief = await cli.ok(`evaluate --data ${data} --checkpoint ${bandit}`);
    const number = String.raw`[+-]?[\d.e-]+`;
    expect(brief).toMatch(
      new RegExp(
        String.raw`\nverdict: compared with the static table, bandit shows (a higher|a lower|no clear difference in) quality and (a higher|a lower|no clear difference in) cost: quality ${number} instead of ${number} \(${number}, 95 % interval ${number} to ${number}\); cost ${number} instead of ${number} \(.*\)\. Judged by [\d ]+ tasks that it has not seen\.\n$`,
      ),
    );
    expect(brief).not.toContain("POLICY");
    const whole = await cli.ok(`evaluate --data ${data} --checkpoint ${bandit} --verbose`);
    expect(whole).toContain("LEARNED MINUS");
    expect(whole.trimEnd().split("\n").at(-1)).toBe(brief.trimEnd().split("\n").at(-1));
  });

  it("print a reason for whatever is refused, and about how large a log would do", async () => {
    const cli = new Cli();
    const data = cli.file("few.jsonl", lines(...routingWorld(180, 3)));
    await cli.ok(`train linucb --data ${data} --out ${cli.folder}/p --id p --alpha 0.1`);
    const { code, out, err } = await cli.run(
      `evaluate --data ${data} --checkpoint ${cli.folder}/p --verbose`,
    );
    expect(code).toBe(1);
    expect(out).toMatch(
      /^static.* refused: the log is too small\. It has 63 tasks left to judge by, with an effective sample size below 50\. Record about 1000/m,
    );
    const reasons = [...out.matchAll(/^\S.* refused: (.*)$/gm)].map(([, why]) => why);
    expect(new Set(reasons).size).toBe(reasons.length);
    expect(out).toMatch(/^frontier: none, since the log cannot carry it/m);
    expect(out).not.toMatch(/APGR|hull/);
    expect(err.match(/about \d+/g)).toEqual(["about 1000"]);
  });

  it("uses a table that a person wrote, and known outcomes where rows carry them", async () => {
    const cli = new Cli();
    await train(cli, routingWorld(3000, 3, { full: true }));
    const { data, bandit } = placesIn(cli);
    const table = cli.file("static.yaml", "schema: rollbook.static-table.v1\ndefault: [strong, cheap]\n");
    const [report] = await cli.json(`evaluate --data ${data} --checkpoint ${bandit} --table ${table}`);
    expect(
      report.contenders.map(({ name, basis }: { name: string; basis: string }) => [name, basis]),
    ).toEqual([
      ["learned", "full information"],
      ["static", "full information"],
      ["single", "full information"],
      ["behaviour", "on-policy"],
      ["random", "full information"],
      ["oracle", "full information"],
    ]);
    const says = (measure: string) =>
      report.comparisons.find(
        (each: { measure: string; against: string }) => each.measure === measure && each.against === "static",
      ).says;
    expect([says("cost"), says("reward")]).toEqual(["better", "better"]);
  });

  it("judge few rows by their known outcomes, to the mean of the outcomes, also if the log has propensities", async () => {
    const cli = new Cli();
    const rows = routingWorld(180, 3, { full: true });
    const data = cli.file("few.jsonl", lines(...rows));
    await cli.ok(`train linucb --data ${data} --out ${cli.folder}/p --id p --alpha 0.1`);
    const words = `--data ${data} --checkpoint ${cli.folder}/p`;
    const [{ contenders, data: judged }] = await cli.json(`evaluate ${words}`);
    const [verdict] = await cli.json(`gate ${words} --quality-only --epsilon-quality 0.2 --dry-run`);
    const [{ checks, support, outcome }] = verdict.candidates;
    // 51 of the 63 rows of the judge split have a right answer of the policy's choice.
    expect([judged.rows, contenders[0].values.quality.value, checks[0].candidate]).toEqual([
      63,
      51 / 63,
      51 / 63,
    ]);
    expect([support.effectiveSize, outcome]).toEqual([63, "pass"]);
    // The policy of the log is known by its propensities alone, so their support is checked.
    const { code, out } = await cli.run(`gate ${words} --quality-only --baseline behaviour --dry-run`);
    expect([code, out]).toEqual([1, expect.stringMatching(/effective sample size/)]);
  });
});

describe("bad input is named with its row and the remedy", () => {
  const change = (index: number, to: Partial<RoutingRow>) =>
    WORLD.map((row, i) => (i === index ? { ...row, ...to } : row));
  /** The rows without their logged distributions, which the change would contradict. */
  const bare = (rows: readonly RoutingRow[]) =>
    rows.map((row) => ({
      ...row,
      state: { ...row.state, candidates: row.state.candidates.map((one) => ({ ...one, probability: null })) },
    }));

  it.each([
    [
      "a zero propensity",
      { propensity: 0 },
      /decisions\.jsonl:8: propensity 0 is not in \(0, 1\]\. A choice that was made had a probability/,
    ],
    ["a propensity above 1", { propensity: 1.5 }, /decisions\.jsonl:8: propensity 1\.5 is not in \(0, 1\]/],
    [
      "a reward that is no number",
      { reward: "NaN" as never },
      /decisions\.jsonl:8: reward "NaN" is not a finite number\. Repair/,
    ],
  ])("%s", async (_name, to, message) => {
    const cli = new Cli();
    const data = cli.file("decisions.jsonl", lines(...change(7, to)));
    for (const words of [
      `train bc --data ${data} --out ${cli.folder}/p --id p`,
      `reward analyze --data ${data}`,
    ]) {
      const fault = await faultOf(cli, words);
      expect(fault).toMatchObject({ exit: 1, code: "bad-row" });
      expect(fault.message).toMatch(message);
    }
  });

  it("NaN as JSON never writes it", async () => {
    const cli = new Cli();
    const data = cli.file(
      "decisions.jsonl",
      lines(...WORLD.slice(0, 5)).replace(/"reward":[^,]+,/, '"reward":NaN,'),
    );
    expect((await faultOf(cli, `reward analyze --data ${data}`)).message).toMatch(/decisions\.jsonl:1/);
  });

  it("missing propensities, unless they are to be guessed", async () => {
    const { cli, bandit } = await trained();
    const data = cli.file("bare.jsonl", lines(...bare(WORLD).map((row) => ({ ...row, propensity: null }))));
    for (const words of [`evaluate --checkpoint ${bandit}`, `gate --candidate ${bandit}`]) {
      const fault = await faultOf(cli, `${words} --data ${data}`);
      expect(fault).toMatchObject({ exit: 1, code: "missing-propensity" });
      expect(fault.message).toMatch(
        /1 193 of 1 193 rows .*no logged propensity, first decision d-\d+\. .*--estimate-propensities/,
      );
    }
    const [guessed] = await cli.json(
      `evaluate --checkpoint ${bandit} --data ${data} --estimate-propensities`,
    );
    expect(guessed.certification).toBe("not certified");
    const promised = await faultOf(
      cli,
      `train bc --data ${data} --out ${cli.folder}/x --id x --floor-risk 0.1`,
    );
    expect(promised.message).toMatch(/a guaranteed floor needs logged propensities/);
  });

  it("one-class data", async () => {
    const cli = new Cli();
    const data = cli.file("decisions.jsonl", lines(...WORLD.filter((row) => row.model_chosen === "strong")));
    const fault = await faultOf(cli, `train bc --data ${data} --out ${cli.folder}/p --id p`);
    expect(fault).toMatchObject({ exit: 1, code: "one-class-data" });
    expect(fault.message).toMatch(/all \d+ rows chose strong, from d-\d+ on.*Log with exploration/);
    await cli.ok(`train ucb --data ${data} --out ${cli.folder}/u --id u`);
    const refused = await faultOf(cli, `evaluate --data ${data} --checkpoint ${cli.folder}/u`);
    expect(refused).toMatchObject({ exit: 1, code: "refused" });
    expect(refused.message).toMatch(
      /cheap gets .* of the choices, and no row that judges has this choice|effective sample size/,
    );
  });

  it("unseen candidates", async () => {
    const { cli, bandit } = await trained();
    const other = JSON.parse(
      JSON.stringify(WORLD).replaceAll('"cheap"', '"tiny"').replaceAll('"strong"', '"huge"'),
    );
    const data = cli.file("other.jsonl", lines(...other));
    const fault = await faultOf(cli, `evaluate --data ${data} --checkpoint ${bandit}`);
    expect(fault).toMatchObject({ exit: 1, code: "unseen-candidate" });
    expect(fault.message).toMatch(
      /decision d-\d+: .* knows none of its candidates \(tiny, huge\); it was trained on cheap, strong/,
    );
  });

  it("empty splits", async () => {
    const cli = new Cli();
    const one = WORLD.map((row) => ({ ...row, task_id: "t" }));
    const data = cli.file("decisions.jsonl", lines(...one));
    const fault = await faultOf(cli, `train ucb --data ${data} --out ${cli.folder}/p --id p`);
    expect(fault).toMatchObject({ exit: 1, code: "empty-split" });
    expect(fault.message).toMatch(/3000 rows in 1 units \(by task\).*--unit/);
    for (const shares of ["1/2", "60/20/30", "6/2/2"]) {
      const wrong = await faultOf(
        cli,
        `train bc --data ${data} --out ${cli.folder}/p --id p --split ${shares}`,
      );
      expect([wrong.exit, wrong.message]).toEqual([2, expect.stringContaining("add up to 100")]);
    }
  });

  it("a checkpoint of another feature spec, a truncated one, and one that names no rows", async () => {
    const { cli, data, bandit } = await trained();
    const spec = {
      schema: "rollbook.feature-spec.v1",
      wordBuckets: 64,
      wordWeights: "count",
      maxWords: 16,
      fields: [],
      candidate: [],
    };
    const features = cli.file("spec.json", JSON.stringify(spec));
    const fault = await faultOf(cli, `evaluate --data ${data} --checkpoint ${bandit} --features ${features}`);
    expect(fault).toMatchObject({ exit: 1, code: "other-feature-spec" });
    expect(fault.message).toMatch(/they differ in wordBuckets.*Train again/);
    truncateSync(join(bandit, "policy.safetensors"), 100);
    for (const words of [`evaluate --checkpoint ${bandit}`, `gate --candidate ${bandit}`]) {
      const cut = await faultOf(cli, `${words} --data ${data}`);
      expect(cut).toMatchObject({ exit: 1, code: "digest-mismatch" });
      expect(cut.message).toMatch(/policy\.safetensors.*Restore the file or train again/);
    }
    expect((await faultOf(cli, `evaluate --data ${data} --checkpoint ${cli.folder}/nowhere`)).code).toBe(
      "no-checkpoint",
    );
  });

  it("a table that knows nobody, a rule that cannot be, an output that is there", async () => {
    const { cli, data, bandit } = await trained();
    const table = cli.file("static.yaml", "schema: rollbook.static-table.v1\ndefault: nobody\n");
    const stranger = await faultOf(
      cli,
      `evaluate --data ${data} --checkpoint ${bandit} --table ${table} --floor 1`,
    );
    expect(stranger).toMatchObject({ exit: 1, code: "bad-table" });
    const tried = await faultOf(
      cli,
      `gate --data ${data} --candidate ${bandit} ${bandit} --candidates-tried 1`,
    );
    expect(tried.message).toMatch(/2 candidates given, and --candidates-tried is 1/);
    expect(await faultOf(cli, `gate --data ${data} --candidate ${bandit} --out ${data}`)).toMatchObject({
      exit: 1,
      code: "exists",
    });
    expect((await cli.run(`gate --data ${data} --candidate ${bandit} --alpha 2`)).code).toBe(2);
  });
});
