import * as natsServer from "../../scripts/setup/nats-server.mjs";
import { runCampaigns } from "../support/campaign-trials.ts";
import { describeNeeding } from "../support/needs.ts";

await describeNeeding(natsServer, "campaigns that strike servers of a cluster", () =>
  runCampaigns(["cluster"]),
);
