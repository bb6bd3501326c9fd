/** Shows the replay store: the router's decisions become tables, which are appended to twice, validated and read. */
import { join } from "node:path";
import { rngFrom } from "../../base/index.ts";
import { extendReplay, writeReplay } from "../../book/replay/index.ts";
import {
  compactReplay,
  minibatches,
  openReplay,
  readDense,
  validateReplay,
} from "../../keep/replay/index.ts";
import { figure, plural, short } from "../../view/format.ts";
import { ROUTER } from "./policies.ts";
import type { Stage, TourScene } from "./stage.ts";

export const replayScene: TourScene = {
  title: "replay",
  async play(stage) {
    const root = join(stage.scratch, "replay");
    const plain = join(stage.scratch, "replay.zarr");
    await writeTwice(stage, root);
    const report = await validateReplay(root);
    const compacted = await compactReplay({ from: root, to: plain, clock: stage.clock, durable: false });
    const plainReport = await validateReplay(plain);
    const [segmented, whole] = [await meanRewards(root), await meanRewards(plain)];
    const batch = await firstBatch(root, stage.seed);
    const sound = report.valid && plainReport.valid && String(segmented) === String(whole);
    return {
      lines: [
        `${plural(report.rows.chains!, "admitted chain")} with ${plural(report.rows.candidates!, "candidate")} in 2 segments; compacted to one Zarr tree, ${short(compacted.segments[0]!.arrays["q_h/reward"]!)}`,
        `mean reward of each candidate: ${segmented.map(figure).join(" and ")}; a minibatch of ${batch} states was read`,
      ],
      proved: sound
        ? "every byte and rule of both stores was checked, and they hold the same decisions"
        : "NOTHING: the stores are not what was written",
      data: {
        rows: report.rows,
        errors: report.count + plainReport.count,
        arrays: compacted.segments[0]!.arrays["q_h/reward"],
      },
    };
  },
};

async function writeTwice({ opened, rollouts }: Stage, root: string): Promise<void> {
  const request = { root, families: [ROUTER], durable: false };
  const half = rollouts.slice(0, rollouts.length >> 1).map(({ content }) => content.digest);
  await writeReplay(opened, { ...request, artifacts: half });
  await extendReplay(opened, request);
}

/** Mean reward by chosen candidate, computed directly from the dense view. */
async function meanRewards(root: string): Promise<number[]> {
  const store = await openReplay(root);
  const { supervision, width } = await readDense(store);
  store.close();
  const [sums, counts] = [new Array<number>(width).fill(0), new Array<number>(width).fill(0)];
  supervision.reward.forEach((reward, state) => {
    const choice = supervision.selected_index[state]!;
    if (Number.isNaN(reward)) return;
    sums[choice]! += reward;
    counts[choice]! += 1;
  });
  return sums.map((sum, choice) => sum / counts[choice]!);
}

async function firstBatch(root: string, seed: bigint): Promise<number> {
  const store = await openReplay(root);
  try {
    for await (const { actor } of minibatches(store, { size: 16, rng: rngFrom(seed) })) return actor.states;
    return 0;
  } finally {
    store.close();
  }
}
