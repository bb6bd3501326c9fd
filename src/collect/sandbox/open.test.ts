import { describe, expect, it } from "vitest";
import * as requirement from "../../../scripts/setup/sandbox.mjs";
import { openEngine, openSandbox } from "./open.ts";
import { probe } from "./probe/probe.ts";
import { against, probeAttacks } from "./probe/probe-attacks.ts";
import { openWitness } from "./probe/witness.ts";
import { type ExecResult, type SandboxEngine, textOf } from "./sandbox.ts";

describe("openSandbox", () => {
  it("auto takes the strongest engine that is here, probes it, and runs a program", async () => {
    const sandbox = await openSandbox({ engine: "auto", workers: 1 });
    expect(sandbox.engine).toBe((await requirement.check()) ? "bubblewrap" : "quickjs");
    const result = await sandbox.exec(
      { kind: "javascript", entry: "a.mjs" },
      { "a.mjs": "console.log(6 * 7)" },
    );
    expect(textOf(result.stdout)).toBe("42\n");
    await sandbox.close();
  });

  it("an engine that was asked for and is not there is an error, never another engine", async () => {
    const asked = openSandbox({ engine: "docker", docker: { socketPath: "/nonexistent/docker.sock" } });
    await expect(asked).rejects.toMatchObject({
      code: "sandbox-engine-missing",
      fields: { engine: "docker" },
    });
    await expect(openSandbox({ engine: "quickjs", workers: 0 })).rejects.toMatchObject({
      code: "bad-sandbox-workers",
    });
  });
});

describe("the probe", () => {
  it("refuses an engine whose answer to any one attack is not the one that proves the attack held", async () => {
    const witness = await openWitness();
    const attacks = against(await openEngine("quickjs"), probeAttacks(witness));
    await witness.close();
    expect(attacks.length).toBeGreaterThanOrEqual(5);
    for (const { name } of attacks) {
      const leaky = await answeringLike(name, (result) => ({
        ...result,
        stdout: Buffer.from('["/etc/x"]\n'),
        exitCode: 0,
        signal: null,
        timedOut: false,
        outOfMemory: false,
      }));
      await expect(probe(leaky), name).rejects.toMatchObject({
        code: "sandbox-probe-failed",
        fields: { attack: name },
      });
    }
  });

  it("refuses an engine that cannot run the attacks at all", async () => {
    const broken = await answeringLike("JavaScript: spin for ever", () => {
      throw new Error("no such thread");
    });
    await expect(probe(broken)).rejects.toMatchObject({
      code: "sandbox-probe-failed",
      fields: { fault: "no such thread" },
    });
  });
});

/** The real QuickJS engine with a changed result for one attack. */
async function answeringLike(
  attack: string,
  change: (result: ExecResult) => ExecResult,
): Promise<SandboxEngine> {
  const engine = await openEngine("quickjs");
  const witness = await openWitness();
  const source = probeAttacks(witness).find(({ name }) => name === attack)!.files["attack.mjs"];
  await witness.close();
  // The bait differs between probes, but the beginning of the program does not.
  const opening = String(source).slice(0, 40);
  return {
    ...engine,
    async openSlot() {
      const slot = await engine.openSlot();
      return {
        close: () => slot.close(),
        exec: async (task) => {
          const result = await slot.exec(task);
          return textOf(task.files.get("attack.mjs")!).startsWith(opening) ? change(result) : result;
        },
      };
    },
  };
}
