/** Every attack on a sandbox: the probe's attacks and many more. The contract suite runs all of them on every engine.
 *  The campaign runs thousands, mixed. In: the host's bait. Out: attacks. Runs nothing itself. */
import type { Attack } from "../../../src/collect/sandbox/probe/attack.ts";
import { against, probeAttacks } from "../../../src/collect/sandbox/probe/probe-attacks.ts";
import type { Witness } from "../../../src/collect/sandbox/probe/witness.ts";
import { javascriptAttacks } from "./javascript.ts";
import { processAttacks } from "./process.ts";

export function attacksFor(engine: Parameters<typeof against>[0], witness: Witness): Attack[] {
  return against(engine, [
    ...probeAttacks(witness),
    ...javascriptAttacks(witness),
    ...processAttacks(witness),
  ]);
}
