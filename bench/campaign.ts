/** `npm run campaign` lists the campaigns; `npm run campaign -- NAME [--scale 0.05] [--seed 1] [--only TEXT] [--json]` runs
 *  bench/campaigns/NAME.ts; --only takes the trials whose name holds the text.
 *  --rounds 15-20 runs a range of a campaign that is made of rounds; --tally FILE notes the outcome there and prints the sum of
 *  all ranges. Exit 1 when a trial failed, or when none ran. */
import { command } from "./support/command.ts";
import { runCampaign } from "./support/run-campaign.ts";

await command(() => runCampaign(process.argv.slice(2)));
