/** Kills three processes that update one bandit's state with SIGKILL at 300 random moments:
 *  every decision counts once. */
import { crashBandits } from "../support/bandit-crash.ts";
import type { Campaign } from "../support/programs.ts";

export const campaign: Campaign = {
  summary:
    "kill -9 of three trainers of one bandit at 300 random moments: every decision is counted exactly once",
  run({ scale, seed }) {
    const kills = Math.max(3, Math.round(300 * scale));
    return crashBandits({ kills, seed, onFailure: (what) => console.error(what) });
  },
};
