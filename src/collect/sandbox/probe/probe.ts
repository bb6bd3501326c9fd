/** Attacks an engine before any task runs in it, and refuses it unless every attack fails as expected.
 *  In: an engine. Out: nothing, or a typed error. Never falls back to a weaker engine. */
import { RollbookError, reasonOf } from "../../../base/index.ts";
import { checkTask, type ExecResult, type SandboxEngine, type Slot } from "../sandbox.ts";
import type { Attack } from "./attack.ts";
import { against, probeAttacks } from "./probe-attacks.ts";
import { openWitness, type Witness } from "./witness.ts";

export async function probe(engine: SandboxEngine): Promise<void> {
  const witness = await openWitness();
  try {
    const slot = await engine.openSlot();
    try {
      for (const attack of against(engine, probeAttacks(witness)))
        await attempt(attack, { engine, slot, witness });
    } finally {
      await slot.close();
    }
  } finally {
    await witness.close();
  }
}

/** Reason why the sandbox did not withstand this attack, or undefined. */
export function faultOf(attack: Attack, result: ExecResult, witness: Witness): string | undefined {
  return attack.fault(result) ?? witness.findings()[0];
}

async function attempt(
  attack: Attack,
  { engine, slot, witness }: { engine: SandboxEngine; slot: Slot; witness: Witness },
): Promise<void> {
  let fault: string | undefined;
  let cause: unknown;
  try {
    const result = await slot.exec(checkTask(attack.program, attack.files, attack.limits));
    fault = faultOf(attack, result, witness);
  } catch (error) {
    cause = error;
    fault = reasonOf(error);
  }
  if (fault === undefined) return;
  throw new RollbookError(
    "sandbox-probe-failed",
    { engine: engine.name, attack: attack.name, threat: attack.threat, fault },
    `the ${engine.name} engine did not hold against "${attack.name}": ${fault}. ` +
      "Nothing was run. Repair the engine or choose another one.",
    { cause },
  );
}
