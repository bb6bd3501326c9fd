import { describe } from "vitest";
import { runCampaigns } from "../support/campaign-trials.ts";

describe("campaigns over whole demos and many logs", () => {
  runCampaigns(["demo", "judge-promises"]);
});
