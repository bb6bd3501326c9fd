import { rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { fastFolder } from "../../../../test/support/fast-folder.ts";
import { makeRollout, stepWire } from "../../../../test/support/shelf.ts";
import { manualClock } from "../../../base/clock.ts";
import type { Digest } from "../../../base/digest.ts";
import type { LateReward } from "../../admit/labels.ts";
import { openReplay, validateReplay, writeReplay } from "../index.ts";

const folder = fastFolder("replay-late");
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const steps = (...rewards: (number | null)[]) => {
  const { steps: [step] = [] } = stepWire({}) as { steps?: object[] };
  return stepWire({ steps: rewards.map((reward) => ({ ...step, reward })) });
};
const whole = (value: number): LateReward[] => [{ call: undefined, value }];

/** Rewards of all steps, then of all tokens, and the reward lineage of each chain. */
async function written(name: string, feedback: ReadonlyMap<number, LateReward[]> | undefined) {
  const rollouts = [
    makeRollout("labelled", { streams: [steps(0.25, 0.5)] }),
    makeRollout("unlabelled", { streams: [steps(null, null)] }),
    makeRollout("tokens", {}, { rewards: undefined }),
  ];
  const blobs = new Map(rollouts.flatMap((each) => each.blobs).map((blob) => [blob.digest, blob]));
  const contents = rollouts.map((each) => each.content.digest);
  const rewards = new Map<Digest, LateReward[]>(
    [...(feedback ?? [])].map(([at, late]) => [contents[at]!, late]),
  );
  const root = join(folder, name);
  await writeReplay({
    root,
    read: async (digest) => blobs.get(digest),
    rollouts: contents,
    clock: manualClock(1000),
    durable: false,
    ...(feedback === undefined ? {} : { feedback: { name: "accepted", rewards } }),
  });
  expect((await validateReplay(root)).errors).toEqual([]);
  const store = await openReplay(root);
  const read = async (table: "steps" | "tokens", column: "reward") => {
    const values: number[] = [];
    for await (const { columns } of store.blocks(table, [column]))
      values.push(...(columns.reward as Float32Array));
    return values;
  };
  const lineage: string[] = [];
  for await (const { columns, texts } of store.blocks("lineage", ["reward"]))
    for (const id of columns.reward as Int32Array) lineage.push(texts[id]!);
  return { steps: await read("steps", "reward"), tokens: await read("tokens", "reward"), lineage };
}

it("late feedback labels chains without rewards, by the rule of batches, and leaves those that have them", async () => {
  const plain = await written("plain", undefined);
  const late = await written("late", new Map([0, 1, 2].map((at) => [at, whole(at + 1)])));
  const gone = [Number.NaN, Number.NaN];
  expect(plain.steps).toEqual([0.25, 0.5, ...gone]);
  expect(plain.tokens.every(Number.isNaN)).toBe(true);
  expect(late.steps).toEqual([0.25, 0.5, 0, 2]);
  expect(late.tokens.reduce((sum, each) => sum + each)).toBe(3);
  // The lineage names the rule that gave the rewards.
  expect(late.lineage.map((each, i) => each === plain.lineage[i])).toEqual([true, false, false]);
});

it("feedback on a call that is not in the stream labels nothing", async () => {
  const { steps: rewards } = await written("elsewhere", new Map([[1, [{ call: 7, value: 1 }]]]));
  expect(rewards.slice(2).every(Number.isNaN)).toBe(true);
});
