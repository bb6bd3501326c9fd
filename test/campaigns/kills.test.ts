import { describe } from "vitest";
import { campaigns } from "../../bench/support/programs.ts";
import { runCampaigns } from "../support/campaign-trials.ts";

/** A training loop is killed in test/e2e/loop.test.ts. */
const isRun = (name: string) => name.endsWith("crash") && name !== "loop-crash";

describe("campaigns that kill processes", () => {
  runCampaigns(campaigns.names.filter(isRun));
});
