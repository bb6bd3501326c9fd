/** Tests that run campaigns at a fraction of their trials: every kind of fault at least once, with one seed. */
import { expect, it } from "vitest";
import { campaigns } from "../../bench/support/programs.ts";

/** `npm run campaign -- NAME` runs the full number of trials. */
const SCALE = 1 / 100;

/** Scales of campaigns with cheap trials: more trials find more faults. The judge's campaign is small, because the
 *  judge's own tests cover most of its promises. */
const OTHER_SCALES: Readonly<Record<string, number>> = {
  cluster: 1 / 30,
  "judge-promises": 1 / 250,
  replay: 1 / 50,
  rollback: 1 / 20,
  "store-crash": 1 / 30,
  tamper: 1 / 40,
};

export function runCampaigns(names: readonly string[]): void {
  for (const name of names) {
    const scale = OTHER_SCALES[name] ?? SCALE;
    it(`the campaign ${name} at ${scale} of its scale runs trials and none fails`, async () => {
      const campaign = await campaigns.load(name);
      const { passed, failed } = await campaign.run({ scale, seed: 1n });
      expect(failed).toBe(0);
      expect(passed).toBeGreaterThan(0);
    }, 120_000);
  }
}
