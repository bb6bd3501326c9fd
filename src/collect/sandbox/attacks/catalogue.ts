/** The catalogue of attacks. One list serves the probe at start (a few of them), the contract suite (all of them,
 *  on every engine) and the campaign (thousands, mixed).
 *  In: the host's bait. Out: programs, each with a judge that says what went wrong. Runs nothing itself. */

import type { SandboxEngine } from "../sandbox.ts";
import type { Attack } from "./attack.ts";
import { javascriptAttacks } from "./javascript.ts";
import { processAttacks } from "./process.ts";
import type { Witness } from "./witness.ts";

/** Those that the engine claims to hold against and whose language it runs. */
export function attacksFor(engine: Pick<SandboxEngine, "covers" | "runs">, witness: Witness): Attack[] {
  return [...javascriptAttacks(witness), ...processAttacks(witness)].filter(
    (attack) => engine.covers.has(attack.threat) && engine.runs.has(attack.program.kind),
  );
}
