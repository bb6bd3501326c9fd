/** Enqueuers and workers killed with SIGKILL at 300 random moments: no accepted rollout lost, none counted twice. */
import type { Campaign } from "../support/programs.ts";
import { crashQueue } from "../support/queue-crash.ts";

export const campaign: Campaign = {
  summary:
    "kill -9 of enqueuers and workers at 300 random moments: no accepted rollout lost, none counted twice",
  run({ scale, seed }) {
    const kills = Math.max(1, Math.round(300 * scale));
    return crashQueue({ kills, seed, onFailure: (what) => console.error(what) });
  },
};
