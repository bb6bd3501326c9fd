import { expect, test } from "vitest";
import { draftWire, stepWire } from "../../test/support/shelf.ts";
import { parseRolloutDraft } from "../contract/index.ts";
import { rewardStream } from "./reward-stream.ts";

const streamOf = (wire: object) => parseRolloutDraft(draftWire("x", { streams: [wire] })).streams[0]!;
const tokens = (over: object = {}) => {
  const { rewards: _, ...wire } = (draftWire("x").streams as Record<string, unknown>[])[0]!;
  return streamOf({ ...wire, ...over });
};
const steps = (...rewards: (number | null)[]) => {
  const { steps: [step] = [] } = stepWire() as { steps?: object[] };
  return streamOf(stepWire({ steps: rewards.map((reward) => ({ ...step, reward })) }));
};

test("the last sampled token gets the reward, every other one 0", () => {
  expect(rewardStream(tokens({ mask: [0, 1, 0] }), 2)).toMatchObject({ rewards: [0, 2, 0] });
  expect(rewardStream(tokens({ mask: undefined }), 2)).toMatchObject({ rewards: [0, 0, 2] });
});

test("the last step gets the reward, every other one 0", () => {
  expect(rewardStream(steps(null, null), 3)).toMatchObject({ steps: [{ reward: 0 }, { reward: 3 }] });
});

test("a stream with rewards of its own keeps them, and without a score nothing is labelled", () => {
  expect(rewardStream(steps(0.5, null), 3)).toMatchObject({ steps: [{ reward: 0.5 }, { reward: null }] });
  expect(rewardStream(tokens({ rewards: [0, 0, 1] }), 3)).toMatchObject({ rewards: [0, 0, 1] });
  expect(rewardStream(tokens(), null)).not.toHaveProperty("rewards");
});
