import { describe } from "vitest";
import { campaigns } from "../../bench/support/programs.ts";
import { runCampaigns } from "../support/campaign-trials.ts";

describe("campaigns that change bytes, attack or measure", () => {
  runCampaigns(campaigns.names.filter((name) => !name.endsWith("crash") && name !== "cluster"));
});
