import { describe } from "vitest";
import { runCampaigns } from "../support/campaign-trials.ts";

describe("campaigns over many logs", () => {
  runCampaigns(["judge-promises"]);
});
