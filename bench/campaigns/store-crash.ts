/** Kills writers and collectors with SIGKILL at 300 random moments. No acknowledged data may be lost, and no partial
 *  write may be visible. */
import type { Campaign } from "../support/programs.ts";
import { crashStore } from "../support/store-crash.ts";

export const campaign: Campaign = {
  summary: "kill -9 of book writers and collectors at 300 random moments: every flushed record survives",
  run({ scale, seed }) {
    const kills = Math.max(1, Math.round(300 * scale));
    return crashStore({ kills, seed, onFailure: (what) => console.error(what) });
  },
};
