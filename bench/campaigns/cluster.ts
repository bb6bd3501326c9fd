/** 60 rounds of faults in a cluster of three NATS nodes, a bucket, two gateways, workers and launchers. */
import { crashCluster } from "../support/cluster-crash.ts";
import type { Campaign } from "../support/programs.ts";

const ROUNDS = 60;

export const campaign: Campaign = {
  summary:
    "launchers, workers, gateways, NATS nodes, the bucket and the network struck in 60 rounds: no accepted rollout lost, none counted twice",
  divisible: true,
  async run({ scale, seed, rounds }) {
    const counts = new Map<string, number>();
    const tally = await crashCluster({
      rounds: rounds ?? { first: 1, last: Math.max(1, Math.round(ROUNDS * scale)) },
      seed,
      onFailure: (what) => console.error(what),
      onFault: (fault) => counts.set(fault, (counts.get(fault) ?? 0) + 1),
    });
    for (const [fault, count] of counts) console.error(`${fault}: ${count} rounds`);
    return tally;
  },
};
