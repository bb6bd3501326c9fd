import * as natsServer from "../../scripts/setup/nats-server.mjs";
import * as versitygw from "../../scripts/setup/versitygw.mjs";
import { runCampaigns } from "../support/campaign-trials.ts";
import { allOf, describeNeeding } from "../support/needs.ts";

await describeNeeding(allOf(natsServer, versitygw), "campaigns that strike servers of a cluster", () =>
  runCampaigns(["cluster"]),
);
