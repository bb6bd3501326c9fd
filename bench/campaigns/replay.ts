/** Damages replay stores. Random damage of every kind must be found, and writers killed at random moments must leave a
 *  store that validates. 1 000 corruptions and 200 kills at scale 1. */
import type { Campaign } from "../support/programs.ts";
import { corruptReplay } from "../support/replay-corruption.ts";
import { crashReplay } from "../support/replay-crash.ts";

export const campaign: Campaign = {
  summary:
    "1 000 random corruptions of replay stores are found; 200 kill -9 of writers leave stores that validate",
  async run({ scale, seed }) {
    const onFailure = (what: string) => console.error(what);
    const count = (full: number) => Math.max(1, Math.round(full * scale));
    const found = await corruptReplay({ trials: count(1000), seed, onFailure });
    const survived = await crashReplay({ kills: count(200), seed, onFailure });
    return { passed: found.passed + survived.passed, failed: found.failed + survived.failed };
  },
};
