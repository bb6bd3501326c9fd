/** 100 synchronous runs of a training loop, killed with SIGKILL at random moments and resumed: 100 equal digests. */
import { crashLoops } from "../support/loop-crash.ts";
import type { Campaign } from "../support/programs.ts";

export const campaign: Campaign = {
  summary:
    "kill -9 of 100 training loops at random moments: resumed, each ends with the digests of one never killed",
  run({ scale, seed }) {
    const runs = Math.max(1, Math.round(100 * scale));
    return crashLoops({ runs, seed, onFailure: (what) => console.error(what) });
  },
};
