/** Five seeds of the demo. Each closes at least half of the gap to the optimum by its exact value. Killed with SIGKILL
 *  at a random moment and resumed, it ends with the same digests. Below full scale: one small demo. */
import { measureDemos } from "../support/demo-runs.ts";
import type { Campaign } from "../support/programs.ts";

export const campaign: Campaign = {
  summary: "five seeds of the demo: half of the gap closed, and the same digests after kill -9 and --resume",
  run: ({ scale, seed }) =>
    measureDemos({ seeds: Math.max(1, Math.round(5 * scale)), full: scale >= 1, seed }),
};
