/** Launchers and workers killed with SIGKILL at 300 random moments: no accepted rollout is lost, none counts twice. */
import { crashLaunches } from "../support/launch-crash.ts";
import type { Campaign } from "../support/programs.ts";

export const campaign: Campaign = {
  summary: "kill -9 of launchers and workers at 300 random moments: no rollout lost, none counted twice",
  run({ scale, seed }) {
    const kills = Math.max(2, Math.round(300 * scale));
    return crashLaunches({ kills, seed, onFailure: (what) => console.error(what) });
  },
};
