import { describe, expect, test } from "vitest";
import {
  CELLS,
  cellFields,
  corridorValues,
  corridorWalks,
  loggedRow,
} from "../../../test/support/chain-world.ts";
import { digestBytes, rngFrom } from "../../base/index.ts";
import { decodeModel, encodeModel } from "../../policy/checkpoint.ts";
import type { FeatureSpec } from "../../policy/feature-spec.ts";
import { meanOutput, mlpOutputs } from "../../policy/mlp-policy.ts";
import { answerOf } from "../../policy/policy-of.ts";
import { digestRows } from "../index.ts";
import type { CqlConfig } from "./cql.ts";
import { trainCql } from "./cql.ts";
import type { Saver } from "./fit.ts";
import { trainNeuralBc } from "./neural-bc.ts";

const walks = corridorWalks(300);
const data = { rows: walks, digest: digestRows(walks) };
const small: CqlConfig = { hidden: [32], steps: 200, every: 50, batch: 32, discount: 0.9 };

function valuesOf(config: CqlConfig): number[][] {
  const { model } = trainCql(data, config, rngFrom(1));
  const outputs = mlpOutputs(model);
  return Array.from({ length: CELLS }, (_, cell) => {
    const found = outputs({ prompt: "", fields: Object.fromEntries(cellFields(cell)) });
    return model.arms.map((_arm, a) => meanOutput(found, a));
  });
}

describe("conservative Q-learning", () => {
  test("without the penalty finds the exact Q values of a chain, to 1e-3", () => {
    const values = valuesOf({
      ...{ hidden: [64], steps: 6000, batch: 64, rate: 1e-3, targetEvery: 100 },
      ...{ discount: 0.9, conservatism: 0, holdout: 0 },
    });
    corridorValues(0.9).forEach((expected, cell) => {
      expected.forEach((value, move) => {
        expect(Math.abs(values[cell]![move]! - value), `cell ${cell}, move ${move}`).toBeLessThan(1e-3);
      });
    });
  });

  test("learns from returns what no next state shows: the first move of a walk in the dark", () => {
    // Two moves, then the end. The first move decides the reward, and all states look the same.
    const dark = Array.from({ length: 400 }, (_, walk) =>
      [0, 1].map((step) => {
        const [first, second] = [walk % 2, (walk >> 1) % 2];
        return loggedRow({
          ...{ id: `w${walk}/0/${step}`, chain: `w${walk}/0/0`, task: `w${walk}` },
          context: { prompt: "", fields: { step } },
          ...{ chosen: step === 0 ? first : second, reward: step === 1 ? first : 0, terminal: step === 1 },
        });
      }),
    ).flat();
    const config: CqlConfig = {
      hidden: [16],
      steps: 400,
      rate: 3e-3,
      discount: 1,
      conservatism: 0,
      targetEvery: 50,
    };
    const gap = (goal: "bootstrap" | "return") => {
      const { model } = trainCql({ rows: dark, digest: digestRows(dark) }, { ...config, goal }, rngFrom(1));
      const values = mlpOutputs(model)({ prompt: "", fields: { step: 0 } });
      return meanOutput(values, 1) - meanOutput(values, 0);
    };
    expect(gap("return")).toBeGreaterThan(0.9);
    expect(Math.abs(gap("bootstrap"))).toBeLessThan(0.3);
  });

  test("a return is known only to the end of an episode: walks that were cut have none", () => {
    const known = new Set(walks.filter(({ terminal }) => terminal).map(({ chain }) => chain));
    const { report } = trainCql(data, { ...small, goal: "return" }, rngFrom(1));
    expect(report.account.unlabelled).toBe(walks.filter(({ chain }) => !known.has(chain)).length);
    expect(report.account.cut).toBe(0);
  });

  test("a chain that was cut teaches nothing at its end, and the account says so", () => {
    const { report } = trainCql(data, small, rngFrom(1));
    const ends = walks.filter((row, i) => walks[i + 1]?.chain !== row.chain);
    const cut = ends.filter(({ terminal }) => !terminal).length;
    expect(cut).toBeGreaterThan(5);
    expect(report.account.cut).toBe(cut);
    const { trained, heldOut, unlabelled } = report.account;
    expect(trained + heldOut + unlabelled + cut).toBe(walks.length);
    expect(heldOut).toBeGreaterThan(0);
  });

  test("the penalty lowers the value of what was not logged, which unpenalised learning leaves to chance", () => {
    // Only `left` was tried: the value of `right` is a guess.
    const rows = Array.from({ length: 60 }, (_, i) =>
      loggedRow({ id: `q${i}`, context: { prompt: "", fields: { x: i % 7 } }, chosen: 0, reward: 0.5 }),
    );
    const gap = (conservatism: number) => {
      const config = { ...small, steps: 2000, discount: 0, conservatism, holdout: 0 };
      const { model } = trainCql({ rows, digest: digestRows(rows) }, config, rngFrom(2));
      const values = mlpOutputs(model)({ prompt: "", fields: { x: 3 } })[0]!;
      return values[1]! - values[0]!;
    };
    expect(gap(1)).toBeLessThan(gap(0) - 2);
  });

  test("a candidate that may not be chosen is neither a target nor an answer", () => {
    const rows = walks.map((row) => ({
      ...row,
      candidates: [...row.candidates, { ...row.candidates[0]!, id: "jump", selectable: false }],
    }));
    const { model } = trainCql({ rows, digest: digestRows(rows) }, small, rngFrom(1));
    const { candidates, context } = rows[0]!;
    expect(answerOf(model)(context, candidates).probabilities[2]).toBe(0);
    const open = candidates.map((one) => ({ ...one, selectable: one.id === "jump" }));
    expect(answerOf(model)(context, open).probabilities).toEqual([0, 0, 1]);
  });

  test("members of an ensemble differ, and their mean decides", () => {
    const { model } = trainCql(data, { ...small, members: 3 }, rngFrom(1));
    const outputs = mlpOutputs(model)(walks[0]!.context);
    expect(outputs).toHaveLength(3);
    expect(new Set(outputs.map((each) => each[0])).size).toBe(3);
    const best = [0, 1].sort((a, b) => meanOutput(outputs, b) - meanOutput(outputs, a))[0]!;
    expect(answerOf(model)(walks[0]!.context, walks[0]!.candidates).probabilities[best]).toBe(1);
  });

  test("rows in any order and the same seed give the same bytes; another seed gives others", () => {
    const bytes = (rows: typeof walks, seed: number) =>
      digestBytes(
        "test",
        encodeModel(trainCql({ rows, digest: digestRows(rows) }, small, rngFrom(seed)).model),
      );
    expect(bytes([...walks].reverse(), 5)).toBe(bytes(walks, 5));
    expect(bytes(walks, 6)).not.toBe(bytes(walks, 5));
  });

  test("killed after any saved state, it ends with the bits of one that ran through", () => {
    const saves: Uint8Array[] = [];
    const keep: Saver = { load: () => undefined, save: (bytes) => void saves.push(bytes) };
    const config = { ...small, members: 2, patience: 2 };
    const whole = trainCql(data, config, rngFrom(3), { saver: keep });
    expect(saves.length).toBeGreaterThan(2);
    for (const saved of saves.slice(0, -1)) {
      const resumed = trainCql(data, config, rngFrom(3), { saver: { load: () => saved, save: () => {} } });
      expect(resumed.report.resumedAt).toBeGreaterThan(0);
      expect(Buffer.from(encodeModel(resumed.model)).equals(encodeModel(whole.model))).toBe(true);
      expect(resumed.report.curve).toEqual(whole.report.curve);
    }
    const other = { ...config, rate: 1e-4 };
    expect(() =>
      trainCql(data, other, rngFrom(3), { saver: { load: () => saves[0], save: () => {} } }),
    ).toThrow(/belongs to another training/);
    const cloned: Uint8Array[] = [];
    const clone = { hidden: small.hidden!, steps: 200, every: 100 };
    trainNeuralBc(data, clone, rngFrom(3), {
      saver: { load: () => undefined, save: (bytes) => void cloned.push(bytes) },
    });
    expect(() =>
      trainCql(data, config, rngFrom(3), { saver: { load: () => cloned[0], save: () => {} } }),
    ).toThrow(/belongs to another training: other rows, options, seed or algorithm/);
  });

  test("stops early on held-out loss and keeps the best weights", () => {
    const config = { ...small, steps: 4000, rate: 1e-2, patience: 2, holdout: 0.5 };
    const { report } = trainCql(data, config, rngFrom(4));
    const losses = report.curve.map(({ heldOut }) => heldOut!.loss);
    expect(report.steps).toBeLessThan(4000);
    expect(report.curve.find(({ step }) => step === report.bestStep)!.heldOut!.loss).toBe(
      Math.min(...losses),
    );
  });

  test("reports what fails silently elsewhere: equal labels, constant features, read-back", () => {
    const rows = walks.map((row) => ({ ...row, reward: 1 }));
    const { report } = trainCql({ rows, digest: digestRows(rows) }, { ...small, discount: 0 }, rngFrom(1));
    expect(report.checks).toMatchObject({ weightsChanged: true, lossFinite: true, labelsEqual: true });
    expect(report.checks.reproduced).toBeLessThan(1e-4);
    expect(report.checks.constantFeatures).toBeGreaterThan(0);
    expect(report.warnings.join()).toMatch(/every reward is the same/);
  });

  /** Questions of rare words; half of the words call for `left`. There are more words than the network has buckets. */
  const texts = Array.from({ length: 600 }, (_, i) => {
    const word = (i * 7) % 100;
    const chosen = Math.floor(i / 100) % 2;
    return loggedRow({
      ...{ id: `t${i}`, task: `t${i}`, chosen, reward: (word % 2 === 0 ? 0 : 1) === chosen ? 1 : 0 },
      context: { prompt: `word${word} asks`, fields: {} },
    });
  });
  const words = { rows: texts, digest: digestRows(texts) };
  const deep: CqlConfig = {
    ...{ hidden: [8], steps: 200, every: 100, batch: 32, rate: 1e-3, conservatism: 0.01 },
    spec: { ...(trainCql(data, small, rngFrom(1)).model.spec as FeatureSpec), fields: [], wordBuckets: 16 },
  };
  const rightShare = ({ model }: ReturnType<typeof trainCql>) => {
    const answer = answerOf(model);
    const right = texts.filter(({ context, candidates, chosen, reward }) => {
      const best = answer(context, candidates).probabilities.indexOf(1);
      return (best === chosen) === (reward === 1);
    });
    return right.length / texts.length;
  };

  test("a wide part tells apart the words that share a bucket, and the checkpoint keeps it", () => {
    const plain = trainCql(words, deep, rngFrom(1));
    const both = trainCql(words, { ...deep, wide: true }, rngFrom(1));
    expect(rightShare(plain)).toBeLessThan(0.8);
    expect(rightShare(both)).toBe(1);
    expect(both.report.checks.reproduced).toBeLessThan(1e-4);
    const read = decodeModel(encodeModel(both.model), "test");
    const { context } = texts[0]!;
    expect(mlpOutputs(read)(context)).toEqual(mlpOutputs(both.model)(context));
    const { wide: _, ...bare } = read.config;
    expect(mlpOutputs({ ...read, config: bare })(context)).not.toEqual(mlpOutputs(read)(context));
  });

  test("a network that has not seen each row once warns that the wide part decides almost alone", () => {
    const warned = (steps: number) =>
      trainCql(words, { ...deep, wide: true, steps, every: steps }, rngFrom(1)).report.warnings.join();
    expect(warned(2)).toMatch(/^.*2 steps of 32 rows do not reach each of the \d+ rows once/);
    expect(warned(50)).not.toContain("do not reach");
  });

  test("a wide part is the same after a training was killed", () => {
    const saves: Uint8Array[] = [];
    const config = { ...deep, wide: true };
    const keep: Saver = { load: () => undefined, save: (bytes) => void saves.push(bytes) };
    const whole = trainCql(words, config, rngFrom(3), { saver: keep });
    const again: Saver = { load: () => saves[0], save: () => {} };
    const resumed = trainCql(words, config, rngFrom(3), { saver: again });
    expect(resumed.report.resumedAt).toBe(100);
    expect(Buffer.from(encodeModel(resumed.model)).equals(encodeModel(whole.model))).toBe(true);
    expect(() => trainCql(words, deep, rngFrom(3), { saver: again })).toThrow(/another training/);
  });

  test("a wide part gives a candidate that the log never chose no credit", () => {
    const third = { ...texts[0]!.candidates[0]!, id: "never" };
    const rows = texts.map((row) => ({ ...row, candidates: [...row.candidates, third] }));
    const { model } = trainCql({ rows, digest: digestRows(rows) }, { ...deep, wide: true }, rngFrom(1));
    const answer = answerOf(model);
    for (const { context, candidates } of rows) expect(answer(context, candidates).probabilities[2]).toBe(0);
  });

  test("refuses a wide part where goals move", () => {
    expect(() => trainCql(data, { ...small, wide: true }, rngFrom(1))).toThrow(/goals of bootstrapping move/);
    const { report } = trainCql(data, { ...small, wide: true, goal: "return" }, rngFrom(1));
    expect(report.checks.weightsChanged).toBe(true);
  });

  test("refuses what it cannot learn from, and says why", () => {
    const train = (rows: typeof walks, config: CqlConfig = small) =>
      trainCql({ rows, digest: digestRows(walks) }, config, rngFrom(1));
    const changed = (change: object) => walks.map((row, i) => (i === 3 ? { ...row, ...change } : row));
    expect(() => train(walks.map((row) => ({ ...row, reward: null })))).toThrow(/nothing to learn from/);
    expect(() => train(changed({ reward: Number.NaN }))).toThrow(/its reward is NaN/);
    expect(() => train(walks, { ...small, discount: 1.5 })).toThrow(
      /discount is 1.5: give a number in 0 … 1/,
    );
    expect(() => train(walks, { ...small, batch: 0 })).toThrow(/batch is 0/);
    expect(() =>
      train(walks.map((row) => ({ ...row, candidates: row.candidates.slice(0, 1), chosen: 0 }))),
    ).toThrow(/1 candidate in all/);
    const crowd = Array.from({ length: 1025 }, (_, i) => ({ ...walks[0]!.candidates[0]!, id: `arm-${i}` }));
    expect(() => train(changed({ candidates: crowd, chosen: 0 }))).toThrow(/2 … 1024/);
    const spec = { ...(trainCql(data, small, rngFrom(1)).model.spec as FeatureSpec), candidate: ["price"] };
    expect(() => train(walks, { ...small, spec })).toThrow(/candidate features/);
    expect(() => train(walks, { ...small, rate: 1e30, steps: 2000 })).toThrow(/the loss of step \d+ is/);
  });
});
