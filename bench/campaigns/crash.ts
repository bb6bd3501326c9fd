/** Kills gateways, launchers and workers with SIGKILL at 300 random moments in total. */
import { RollbookError } from "../../src/base/errors.ts";
import { rngFrom } from "../../src/base/rng.ts";
import { crashGateway } from "../support/gateway/crash.ts";
import { crashLaunches } from "../support/launch-crash.ts";
import type { Campaign } from "../support/programs.ts";
import { crashQueue } from "../support/queue-crash.ts";

const KILLS = 300;
const onFailure = (what: string) => console.error(what);

/** The killed programs, and their share of the kills. Each part checks its own promises. */
const PARTS: readonly {
  readonly name: string;
  readonly share: number;
  run(options: { kills: number; seed: bigint; onFailure: typeof onFailure }): Promise<{
    passed: number;
    failed: number;
  }>;
}[] = [
  { name: "gateways under load", share: 0.3, run: crashGateway },
  { name: "launchers and workers", share: 0.2, run: crashLaunches },
  {
    name: "launchers, workers and their gateway",
    share: 0.3,
    run: (options) => crashLaunches({ ...options, gateway: true }),
  },
  { name: "enqueuers and workers at the worker server", share: 0.2, run: crashQueue },
];

export const campaign: Campaign = {
  summary:
    "kill -9 of gateways, launchers and workers at 300 random moments: no accepted rollout lost, none counted twice, every delivered reply recorded",
  async run({ scale, seed }) {
    const tally = { passed: 0, failed: 0 };
    for (const { name, share, run } of PARTS) {
      const kills = Math.max(1, Math.round(KILLS * share * scale));
      const { passed, failed } = await run({ kills, seed: rngFrom(seed).split(name).u64(), onFailure });
      if (passed + failed === 0)
        throw new RollbookError("no-trials", { name }, `${name}: nobody was killed.`);
      console.error(`${name}: ${passed} kills passed, ${failed} failed`);
      tally.passed += passed;
      tally.failed += failed;
    }
    return tally;
  },
};
