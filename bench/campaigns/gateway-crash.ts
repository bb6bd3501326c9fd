/** Gateways killed with SIGKILL at 300 random moments under load: every reply that was delivered is recorded. */
import { crashGateway } from "../support/gateway/crash.ts";
import type { Campaign } from "../support/programs.ts";

export const campaign: Campaign = {
  summary:
    "kill -9 of the gateway at 300 random moments: every delivered reply is recorded once and sealed once",
  run({ scale, seed }) {
    const kills = Math.max(1, Math.round(300 * scale));
    return crashGateway({ kills, seed, onFailure: (what) => console.error(what) });
  },
};
