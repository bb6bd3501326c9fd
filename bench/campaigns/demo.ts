/** Five seeds of the demo: each closes at least half of the gap to the optimum by its exact value, and ends with the same
 *  digests when it is killed with SIGKILL at a random moment and resumed. Below full scale: one small demo. */
import { measureDemos } from "../support/demo-runs.ts";
import type { Campaign } from "../support/programs.ts";

export const campaign: Campaign = {
  summary: "five seeds of the demo: half of the gap closed, and the same digests after kill -9 and --resume",
  run: ({ scale, seed }) =>
    measureDemos({ seeds: Math.max(1, Math.round(5 * scale)), full: scale >= 1, seed }),
};
