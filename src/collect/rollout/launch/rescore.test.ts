import { expect, it } from "vitest";
import { collect, launchWorld } from "../../../../test/support/launch-world.ts";
import { systemClock } from "../../../base/index.ts";
import { Feedback, openRecord } from "../../../contract/index.ts";
import { rewardOf } from "../agent/reward.ts";
import { rescore } from "./rescore.ts";

it("scoring again adds sealed feedback with the new total and leaves every old byte as it was", async () => {
  const { start, book, signer } = await launchWorld();
  const rows = [
    { prompt: "2 + 2", label: 4, metadata: { a: 2 } },
    { prompt: "3 + 3", label: 6, metadata: { a: 3 } },
  ];
  const results = await collect(
    start(rows, ({ a }) => ({ reward: 0, metrics: { a: a as number }, finalState: 4 })),
  );
  const envelopes = results.map((each) => (each.state === "sealed" ? each.envelope : raise()));
  const before = await Promise.all(
    envelopes.map(async (digest) => (await book.get(digest))!.bytes.toString()),
  );
  const scorer = rewardOf("match", ({ finalState, task, metrics, claimed }) =>
    finalState === task.label && metrics.a === 2 && claimed === 0 ? 1 : 0.25,
  );
  const rescored = await rescore(envelopes, { book, scorer, name: "graded", clock: systemClock, signer });
  const after = rescored.map((each) => [each.before, each.after]).sort();
  expect(after).toEqual([
    [0, 0.25],
    [0, 1],
  ]);
  const [first] = rescored;
  const feedback = openRecord(Feedback, (await book.get(first!.feedback[0]!))!.bytes);
  expect(feedback).toMatchObject({ subject: first!.content, name: "graded", idempotencyKey: scorer.digest });
  expect(
    await Promise.all(envelopes.map(async (digest) => (await book.get(digest))!.bytes.toString())),
  ).toEqual(before);
});

function raise(): never {
  throw new Error("the rollout was not sealed");
}
