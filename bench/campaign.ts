/** `npm run campaign` lists the campaigns; `npm run campaign -- NAME [--scale 0.05] [--seed 1] [--only TEXT] [--json]` runs
 *  bench/campaigns/NAME.ts. The option --only selects the trials whose name contains the text.
 *  The option --rounds 15-20 runs a range of rounds of a divisible campaign. The option --tally FILE appends the outcome
 *  to the file and prints the sum of all ranges. Exit 1 if a trial failed or no trial ran. */
import { command } from "./support/command.ts";
import { runCampaign } from "./support/run-campaign.ts";

await command(() => runCampaign(process.argv.slice(2)));
