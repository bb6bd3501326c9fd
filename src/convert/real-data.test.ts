/** The readers and estimators on public data. Each block is skipped, with a message, if its files are absent. */
import { describe, expect, test } from "vitest";
import { toColumns } from "../../bench/support/judge/to-columns.ts";
import { loadMulticlass } from "../../bench/support/judge/uci-multiclass.ts";
import { collect } from "../../test/support/collect.ts";
import { realData } from "../../test/support/real-data.ts";
import { rngFrom } from "../base/rng.ts";
import {
  checkDecisions,
  diagnose,
  ips,
  judgePolicy,
  type PanelEstimates,
  type PanelRefusal,
  perDecisionIs,
  snips,
} from "../judge/ope/index.ts";
import type { ForeignDecision } from "./foreign-decision.ts";
import { readOpenBandit } from "./open-bandit.ts";
import { readRllibJson } from "./rllib-json.ts";
import { readDsjson } from "./vowpal-dsjson.ts";
import { readVowpalAdf, readVowpalCb } from "./vowpal-text.ts";

const obd = realData("obd/bts/men.csv.gz");
const rcv1 = realData("vw/rcv1_raw_cb_small.vw");
const cartpole = realData("cartpole/cartpole-v1_large.jsonl");
const optdigits = realData("uci/optdigits.data");

describe.skipIf(obd === undefined)("Open Bandit, men, uniform policy on the Thompson log", () => {
  const uniform = new Float64Array(34).fill(1 / 34);
  const load = () => toColumns(readOpenBandit(obd!), { target: () => uniform });

  test("the published figures, and a direct computation to 1e-12", async () => {
    const { log } = await load();
    expect(log.reward).toHaveLength(10_000);
    let wr = 0;
    let w = 0;
    let ww = 0;
    for (let i = 0; i < 10_000; i++) {
      const weight = 1 / 34 / log.behaviour[i]!;
      wr += weight * log.reward[i]!;
      w += weight;
      ww += weight * weight;
    }
    expect(Math.abs(ips(log).value - wr / 10_000)).toBeLessThan(1e-12);
    expect(Math.abs(snips(log).value - wr / w)).toBeLessThan(1e-12);
    const facts = diagnose(log);
    expect(Math.abs(facts.effectiveSize - (w * w) / ww)).toBeLessThan(1e-9);
    expect(ips(log).value).toBeCloseTo(0.003009, 6);
    expect(snips(log).value).toBeCloseTo(0.003189, 6);
    expect(Math.round(facts.effectiveSize)).toBe(656);
    expect(Math.round(facts.largestWeight)).toBe(178);
  });

  test("the same points as Open Bandit Pipeline 0.5.7 (ipw, snipw), computed there", async () => {
    const { log } = await load();
    expect(ips(log).value).toBeCloseTo(0.003008626327256482, 14);
    expect(snips(log).value).toBeCloseTo(0.0031894231622774027, 14);
  });

  test("support suffices, the estimates are certified, and a policy of one rare item is refused", async () => {
    const { log } = await load();
    const verdict = judgePolicy(log, { rng: rngFrom(1) }) as PanelEstimates;
    expect(verdict).toMatchObject({ kind: "estimated", certification: "certified" });
    const counts = new Float64Array(34);
    for (const item of log.candidates!.chosen) counts[item] = counts[item]! + 1;
    const rarest = Float64Array.from({ length: 34 }, (_, i) =>
      i === counts.indexOf(Math.min(...counts)) ? 1 : 0,
    );
    const thin = await toColumns(readOpenBandit(obd!), { target: () => rarest });
    const refused = judgePolicy(thin.log, { rng: rngFrom(1) }) as PanelRefusal;
    expect(refused.faults.map((fault) => fault.kind)).toContain("thin-support");
  });
});

describe.skipIf(rcv1 === undefined)("Vowpal Wabbit sets", () => {
  test("rcv1: 1000 examples, half of them of each action, uniform propensities", async () => {
    const rows = await collect(readVowpalCb(rcv1!, { actions: 2 }));
    expect(rows).toHaveLength(1000);
    expect(rows.filter((row) => row.action === 0)).toHaveLength(504);
    expect(rows.filter((row) => row.reward === -1)).toHaveLength(477);
    expect(rows.every((row) => row.propensity === 0.5)).toBe(true);
  });

  test("cb_load: as many examples as VW's own reference counted", async () => {
    const load = await collect(readVowpalAdf(realData("vw/cb_load.dat")!));
    expect(load).toHaveLength(113);
    expect(load.every((row: ForeignDecision) => row.actions === 7)).toBe(true);
  });

  test("dsjson: 23 events whose distributions sum to 1", async () => {
    const rows = await collect(readDsjson(realData("vw/dsjson_cb.json")!));
    expect(rows).toHaveLength(23);
    for (const row of rows) expect(row.distribution!.reduce((s, p) => s + p)).toBeCloseTo(1, 6);
  });
});

describe.skipIf(cartpole === undefined)("CartPole log of RLlib", () => {
  test("4137 steps in 21 episodes with full distributions; judged on itself it has its mean return", async () => {
    const { log } = await toColumns(readRllibJson(cartpole!), {
      target: (row) => row.distribution!,
      features: (row) => row.context.map(([, value]) => value),
      discount: 1,
    });
    checkDecisions(log);
    expect(log.reward).toHaveLength(4137);
    expect(diagnose(log)).toMatchObject({ units: 21, meanWeightZ: 0 });
    expect(perDecisionIs(log).value).toBeCloseTo(4137 / 21, 9);
  });
});

describe.skipIf(optdigits === undefined)("UCI", () => {
  test("optdigits has 5620 rows of 64 features and 10 classes, satimage 6435 of 36 and 6", async () => {
    const digits = await loadMulticlass(optdigits!);
    expect([digits.label.length, digits.width, digits.classes.length]).toEqual([5620, 64, 10]);
    const images = await loadMulticlass(realData("uci/satimage.data")!);
    expect([images.label.length, images.width, images.classes.length]).toEqual([6435, 36, 6]);
  });
});
