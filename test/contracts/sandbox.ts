/** The contract of every engine: the same programs give the same results, and the engine withstands every attack that
 *  it claims to cover. One suite; an engine's test names the engine and how to open it. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openPool } from "../../src/collect/sandbox/pool.ts";
import type { Attack } from "../../src/collect/sandbox/probe/attack.ts";
import { faultOf, probe } from "../../src/collect/sandbox/probe/probe.ts";
import { openWitness, type Witness } from "../../src/collect/sandbox/probe/witness.ts";
import {
  type Program,
  type Sandbox,
  type SandboxEngine,
  type Threat,
  textOf,
} from "../../src/collect/sandbox/sandbox.ts";
import { untilRunning } from "../support/abandon.ts";
import { attacksFor } from "../support/sandbox-attacks/catalogue.ts";

export interface ContractOptions {
  open(): Promise<SandboxEngine>;
  /** Threats that this engine is expected to claim. A missing claim is a failure, not a skipped test. */
  readonly covers: readonly Threat[];
  /** Ends the engine under a running program, from outside. Absent if the engine cannot be ended from outside. */
  readonly strike?: () => Promise<void>;
}

export function sandboxContract(name: string, options: ContractOptions): void {
  describe(`${name} sandbox`, () => {
    let engine: SandboxEngine;
    let sandbox: Sandbox;
    let witness: Witness;

    beforeAll(async () => {
      engine = await options.open();
      witness = await openWitness();
      sandbox = await openPool(engine, 2);
    }, 120_000);

    afterAll(async () => {
      await sandbox?.close();
      await witness?.close();
    });

    it("passes its own probe", () => probe(engine));

    it("claims what it is expected to cover, and has an attack for every claim", () => {
      expect([...engine.covers].sort()).toEqual([...options.covers].sort());
      const attacked = new Set(attacksFor(engine, witness).map((attack) => attack.threat));
      expect([...attacked].sort()).toEqual([...options.covers].sort());
    });

    // Attack names are known only after the engine is open, so one test reports all faults in one list.
    it("holds against every attack it covers, one after the other in the same slots", async () => {
      const found: string[] = [];
      for (const attack of attacksFor(engine, witness)) found.push(...(await faults(attack)));
      expect(found).toEqual([]);
    }, 240_000);

    async function faults(attack: Attack): Promise<string[]> {
      const result = await sandbox.exec(attack.program, attack.files, attack.limits);
      const fault = faultOf(attack, result, witness);
      return fault === undefined ? [] : [`${attack.name}: ${fault}`];
    }

    const script = (more: Partial<Program> = {}) =>
      ({ kind: "javascript", entry: "main.mjs", ...more }) as Program;
    const run = (source: string, more: Partial<Program> = {}, limits = {}) =>
      sandbox.exec(script(more), { "main.mjs": source, "data/é😀.txt": "naïve ☃" }, limits);

    it("reports a status, keeps stdout and stderr apart, and calls it data", async () => {
      const result = await run('console.log("out"); console.error("err"); process.exit(7);');
      expect(result).toMatchObject({ exitCode: 7, signal: null, timedOut: false, outOfMemory: false });
      expect([textOf(result.stdout), textOf(result.stderr)]).toEqual(["out\n", "err\n"]);
      expect(result.usage.wallMs).toBeGreaterThan(0);
    });

    it("an uncaught error is status 1 with the error on stderr", async () => {
      const result = await run('throw new TypeError("no such thing");');
      expect(result.exitCode).toBe(1);
      expect(textOf(result.stderr)).toContain("no such thing");
    });

    it("carries unicode and every byte value through files, stdin, arguments and outputs", async () => {
      const bytes = Uint8Array.from({ length: 256 }, (_, i) => i);
      const source = `
        import { readFileSync, writeFileSync } from "node:fs";
        console.log(readFileSync("data/é😀.txt", "utf8"), process.argv[2], process.env.GREETING);
        const all = readFileSync(0);
        writeFileSync("/tmp/copy.bin", all);
        process.stderr.write(all);`;
      const result = await run(source, {
        ...{ args: ["ärg 'quoted' $HOME\n"], env: { GREETING: "grüß gott" }, stdin: bytes },
        outputs: ["copy.bin", "absent"],
      });
      expect(textOf(result.stdout)).toBe("naïve ☃ ärg 'quoted' $HOME\n grüß gott\n");
      expect([...result.stderr]).toEqual([...bytes]);
      expect(Object.keys(result.files)).toEqual(["copy.bin"]);
      expect([...result.files["copy.bin"]!]).toEqual([...bytes]);
    });

    it("leaves out an output file that is larger than the limit, whole", async () => {
      const source = `
        import { writeFileSync } from "node:fs";
        writeFileSync("/tmp/big", "x".repeat(2000)); writeFileSync("/tmp/small", "y".repeat(900));`;
      const result = await run(source, { outputs: ["big", "small"] }, { filesBytes: 1000 });
      expect(Object.entries(result.files).map(([path, content]) => [path, content.byteLength])).toEqual([
        ["small", 900],
      ]);
    });

    it("timers fire, modules import each other, and a program that never settles ends with 13", async () => {
      const files = {
        "main.mjs": 'import { two } from "./lib/two.mjs"; setTimeout(() => console.log(two), 5);',
        "lib/two.mjs": "export const two = 2;",
      };
      const result = await sandbox.exec({ kind: "javascript", entry: "main.mjs" }, files);
      expect([result.exitCode, textOf(result.stdout)]).toEqual([0, "2\n"]);
      expect((await run("await new Promise(() => {});")).exitCode).toBe(13);
    });

    it("what was printed before the end is kept when time runs out", async () => {
      const result = await run('console.log("first"); for (;;) {}', {}, { timeoutMs: 1_500 });
      expect([textOf(result.stdout), result.timedOut, result.exitCode]).toEqual(["first\n", true, null]);
    });

    const { strike } = options;
    if (strike !== undefined)
      it("an engine that dies under a program is a typed error, not a verdict, and the next program runs", async () => {
        const argv = ["sleep", `60.${process.pid}`];
        const sleeping = sandbox.exec({ kind: "command", argv }, {}, { timeoutMs: 60_000 });
        const failure = expect(sleeping).rejects.toMatchObject({ code: "sandbox-engine-died" });
        await untilRunning(argv.join(" "));
        await strike();
        await failure;
        expect(textOf((await run('console.log("again")')).stdout)).toBe("again\n");
      });

    it("refuses paths that leave the task, and programs it cannot run", async () => {
      for (const path of ["../x", "/x", "a//b", "a/./b", "", "a\0b"])
        await expect(sandbox.exec(script(), { "main.mjs": "", [path]: "" })).rejects.toMatchObject({
          code: "bad-sandbox-task",
        });
      await expect(
        sandbox.exec({ kind: "javascript", entry: "main.js" }, { "main.js": "" }),
      ).rejects.toMatchObject({
        code: "bad-sandbox-task",
      });
      for (const kind of ["command", "python"] as const)
        if (!engine.runs.has(kind))
          await expect(
            sandbox.exec({ kind, argv: ["true"], entry: "main.mjs" } as Program, { "main.mjs": "" }),
          ).rejects.toMatchObject({
            code: "sandbox-unsupported-program",
          });
    });
  });
}
