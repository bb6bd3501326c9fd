import { describe } from "vitest";
import { campaigns } from "../../bench/support/programs.ts";
import { runCampaigns } from "../support/campaign-trials.ts";

/** test/e2e/loop.test.ts kills a training loop. */
const isRun = (name: string) => name.endsWith("crash") && name !== "loop-crash";

describe("campaigns that kill processes", () => {
  runCampaigns(campaigns.names.filter(isRun));
});
