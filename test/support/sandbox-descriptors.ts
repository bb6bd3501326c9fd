/** Opens an engine, neither probed nor pooled, and prints the descriptors that programs in it find open. Runs as its
 *  own process: `sandbox-descriptors.ts ENGINE`. */
import { openEngine } from "../../src/collect/sandbox/open.ts";
import { against, probeAttacks } from "../../src/collect/sandbox/probe/probe-attacks.ts";
import { openWitness } from "../../src/collect/sandbox/probe/witness.ts";
import { checkTask, type EngineName } from "../../src/collect/sandbox/sandbox.ts";

const engine = await openEngine(process.argv[2] as EngineName);
const slot = await engine.openSlot();
const witness = await openWitness();
for (const attack of against(engine, probeAttacks(witness))) {
  if (!attack.name.includes("descriptor")) continue;
  const fault = attack.fault(await slot.exec(checkTask(attack.program, attack.files, attack.limits)));
  if (fault !== undefined) process.stdout.write(`${attack.name}: ${fault}\n`);
}
await witness.close();
await slot.close();
await engine.close();
