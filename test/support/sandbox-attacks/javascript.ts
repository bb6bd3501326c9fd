/** Attacks written in JavaScript, which every engine runs: Node inside namespaces, or QuickJS in WebAssembly. */

import { type Attack, PATIENCE_MS } from "../../../src/collect/sandbox/probe/attack.ts";
import { exits, flags, prints } from "../../../src/collect/sandbox/probe/result-checks.ts";
import type { Witness } from "../../../src/collect/sandbox/probe/witness.ts";
import { type ExecResult, type Limits, textOf } from "../../../src/collect/sandbox/sandbox.ts";
import { hides } from "./hides.ts";

const MIB = 1024 * 1024;

export function javascriptAttacks(witness: Witness): Attack[] {
  const bait = JSON.stringify(witness.secretPath);
  return [
    attack(
      {
        name: "backtrack for ever",
        threat: "time",
        source: "/^(a+)+$/.test('a'.repeat(60) + 'b');",
        limits: { timeoutMs: 400 },
      },
      (result) => flags(result, "timedOut"),
    ),
    attack(
      {
        name: "await for ever",
        threat: "time",
        source: "const spin = async () => { for (;;) await null; }; await spin();",
        limits: { timeoutMs: 400 },
      },
      (result) => flags(result, "timedOut"),
    ),
    attack(
      {
        name: "flood the output",
        threat: "output",
        // The flood has pauses. Without them Node would hold the flood in memory instead of writing it.
        source: FLOOD,
        limits: { outputBytes: 5_000, timeoutMs: 20_000 },
      },
      (result) => flags(result, "outputExceeded") ?? exactly(result, 5_000),
    ),
    attack(
      {
        name: "write a little too much",
        threat: "output",
        source: "console.log('x'.repeat(9999)); console.error('y'.repeat(9999));",
        limits: { outputBytes: 5_000 },
      },
      (result) => exits(result, 0) ?? exactly(result, 5_000),
    ),
    attack(
      { name: "read and import a file of the host", threat: "host-files", source: readHost(bait) },
      (result) => hides(result, witness.secret) ?? prints(result, "2 refused\n"),
    ),
    attack(
      { name: "reach the host through constructors", threat: "host-files", source: CONSTRUCTORS },
      (result) => hides(result, witness.secret) ?? exits(result, 0),
    ),
    attack({ name: "overflow the stack", threat: "memory", source: OVERFLOW }, (result) =>
      prints(result, "RangeError or InternalError\n"),
    ),
    attack(
      {
        name: "fill the scratch space",
        threat: "scratch",
        source: FILL,
        limits: { scratchBytes: 4 * MIB },
      },
      (result) =>
        exits(result, 0) ??
        (Number(textOf(result.stdout)) <= 4 * MIB ? undefined : "more than the limit fitted"),
    ),
    ...[0, 40, 190, 250, 4_000, 3_000_000].map((length) =>
      attack(
        {
          name: `take memory by file names of ${length} characters more`,
          ...{ threat: "memory", source: nameMany(length) },
          limits: { memoryBytes: 64 * MIB, scratchBytes: 8 * MIB, timeoutMs: 4_000 },
        },
        // The kernel counts names as memory and may end the program for that; QuickJS counts them as scratch space.
        (result) =>
          result.outOfMemory || result.timedOut
            ? undefined
            : (exits(result, 0) ??
              (Number(textOf(result.stdout)) <= 64 * MIB
                ? undefined
                : "names took more than the memory limit")),
      ),
    ),
    ...["stdout", "stderr"].map((stream) =>
      attack(
        {
          name: `write nothing and single characters to ${stream} very often`,
          ...{ threat: "output", source: drip(stream), limits: { outputBytes: 100_000 } },
        },
        (result) => exits(result, 0),
      ),
    ),
    attack({ name: "find what the last task left", threat: "leftovers", source: LEFTOVERS }, (result) =>
      prints(result, "[]\n"),
    ),
    attack(
      { name: "find what the last task left, again", threat: "leftovers", source: LEFTOVERS },
      (result) => prints(result, "[]\n"),
    ),
  ];
}

interface Script {
  readonly name: string;
  readonly threat: Attack["threat"];
  readonly source: string;
  readonly limits?: Partial<Limits>;
}

function attack(script: Script, fault: Attack["fault"]): Attack {
  return {
    name: `JavaScript: ${script.name}`,
    threat: script.threat,
    program: { kind: "javascript", entry: "attack.mjs" },
    files: { "attack.mjs": script.source },
    limits: { timeoutMs: PATIENCE_MS, ...script.limits },
    fault,
  };
}

function exactly(result: ExecResult, bytes: number): string | undefined {
  if (!result.truncated.stdout) return "the loss is not flagged";
  return result.stdout.byteLength === bytes
    ? undefined
    : `kept ${result.stdout.byteLength} bytes, not ${bytes}`;
}

function readHost(bait: string): string {
  return `
import { readFileSync } from "node:fs";
let refused = 0;
try { console.log(readFileSync(${bait}, "utf8")); } catch { refused++; }
try { console.log(await import(${bait})); } catch { refused++; }
console.log(refused + " refused");`;
}

/** In QuickJS the only functions from outside are console, process and fs. Their constructors must be the guest's own,
 *  which have no access to the host. In Node the sandbox is the boundary, and the script just ends. */
const CONSTRUCTORS = `
for (const outside of [console.log, process.exit, globalThis.constructor, (async () => {})]) {
  const make = outside.constructor.constructor ?? outside.constructor;
  const global = make("return this")();
  if (global !== undefined && global !== globalThis) { console.log("another global"); process.exit(9); }
}`;

const OVERFLOW = `
let depth = 0;
const dive = () => { depth++; dive(); };
try { dive(); } catch (error) {
  console.log(/^(RangeError|InternalError)$/.test(error.name) ? "RangeError or InternalError" : error.name);
}`;

const FILL = `
import { writeFileSync } from "node:fs";
let written = 0;
try { for (let i = 0; i < 100; i++) { writeFileSync("/tmp/fill" + i, "x".repeat(1 << 20)); written += 1 << 20; } } catch {}
console.log(written);`;

function nameMany(length: number): string {
  return `
import { mkdirSync, writeFileSync } from "node:fs";
let taken = 0;
try {
  for (let i = 0; ; i++) {
    const name = "/tmp/" + String(i).padStart(5 + ${length}, "0");
    if (i % 2) mkdirSync(name); else writeFileSync(name, "");
    taken += name.length;
  }
} catch {}
console.log(taken);`;
}

function drip(stream: string): string {
  return `
for (let i = 0; i < 50000; i++) { process.${stream}.write(""); process.${stream}.write("x"); }`;
}

const FLOOD = `
for (const line = "x".repeat(9999); ; await new Promise((resolve) => setTimeout(resolve, 1)))
  for (let i = 0; i < 50; i++) console.log(line);`;

const LEFTOVERS = `
import { readdirSync, writeFileSync } from "node:fs";
console.log(JSON.stringify(readdirSync("/tmp")));
writeFileSync("/tmp/left", "by the last task");
globalThis.left = 1;`;
