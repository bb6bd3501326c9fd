import { describe } from "vitest";
import { campaigns } from "../../bench/support/programs.ts";
import { runCampaigns } from "../support/campaign-trials.ts";

/** Campaigns with a test file of their own: they kill processes, need servers, or judge many logs.
 *  test/e2e/demo.test.ts kills a demo. */
const APART = /crash$|^(cluster|demo|judge-promises)$/;

describe("campaigns that change bytes, attack or measure", () => {
  runCampaigns(campaigns.names.filter((name) => !APART.test(name)));
});
