/** The attacks that every engine must withstand at start: few and fast. The attack suite of the tests adds more.
 *  In: the host's bait. Out: attacks. Runs nothing itself. */
import { type SandboxEngine, textOf } from "../sandbox.ts";
import { type Attack, javascript, shell } from "./attack.ts";
import { cleanEnvironment, exits, flags, killed, prints } from "./result-checks.ts";
import type { Witness } from "./witness.ts";

const MIB = 1024 * 1024;

export function probeAttacks(witness: Witness): Attack[] {
  return [
    javascript("write outside /tmp", "write-outside", writeEverywhere(JSON.stringify(witness.secretPath)), {
      fault: (result) => prints(result, "[]\n"),
    }),
    javascript("connect to the host", "network", connect(witness.port), {
      fault: (result) => prints(result, "refused\n"),
    }),
    javascript("list folders through open descriptors", "host-files", OPEN_FOLDERS, {
      fault: (result) => prints(result, "[]\n"),
    }),
    shell("find an open descriptor", "host-files", OPEN_DESCRIPTORS, {
      fault: (result) => prints(result, "0 1 2 \n"),
    }),
    javascript("read the environment", "environment", ENVIRONMENT, {
      fault: (result) => exits(result, 0) ?? cleanEnvironment(JSON.parse(textOf(result.stdout))),
    }),
    javascript("take all memory", "memory", HOG, {
      limits: { memoryBytes: 48 * MIB },
      fault: (result) => flags(result, "outOfMemory"),
    }),
    javascript("spin for ever", "time", "for (;;) {}", {
      limits: { timeoutMs: 400 },
      fault: (result) => flags(result, "timedOut"),
    }),
    // Ends by itself once a fork is refused.
    shell("fork until refused", "processes", "i=0; while [ $i -lt 2000 ]; do sleep 9 & i=$((i+1)); done", {
      limits: { pids: 24 },
      fault: (result) =>
        flags(result, "pidsExceeded") ?? (result.exitCode === 0 ? "2000 processes ran" : undefined),
    }),
    shell("hog memory", "memory", "exec tail /dev/zero", {
      limits: { memoryBytes: 32 * MIB },
      fault: (result) => flags(result, "outOfMemory") ?? killed(result) ?? silent(result.stderr),
    }),
    shell("read the environment through /proc", "environment", "cat /proc/*/environ | tr '\\0' '\\n'; env", {
      fault: (result) => cleanEnvironment(namesIn(textOf(result.stdout))),
    }),
    shell(
      "carry no privilege",
      "privilege",
      "grep -E '^(Uid|CapEff|CapBnd|CapAmb|NoNewPrivs|Seccomp):' /proc/self/status",
      { fault: (result) => exits(result, 0) ?? powerless(textOf(result.stdout)) },
    ),
  ];
}

/** Attacks for the threats that the engine claims to cover, in languages that it runs. */
export function against(
  engine: Pick<SandboxEngine, "covers" | "runs">,
  attacks: readonly Attack[],
): Attack[] {
  return attacks.filter(({ threat, program }) => engine.covers.has(threat) && engine.runs.has(program.kind));
}

function namesIn(environ: string): string[] {
  const lines = environ.split("\n").filter(Boolean);
  return lines.map((line) => line.split("=")[0]!);
}

function silent(stderr: Uint8Array): string | undefined {
  return stderr.byteLength === 0 ? undefined : `the sandbox itself wrote ${textOf(stderr)}`;
}

function powerless(status: string): string | undefined {
  const value = (key: string) => new RegExp(`^${key}:\\s+(\\S+)`, "m").exec(status)?.[1];
  if (value("Uid") !== "65534") return `runs as user ${value("Uid")}`;
  if (value("CapEff") !== "0000000000000000") return `has capabilities ${value("CapEff")}`;
  if (value("NoNewPrivs") !== "1") return "may gain privileges";
  return value("Seccomp") === "2" ? undefined : "has no system call filter";
}

function writeEverywhere(bait: string): string {
  return `
import { writeFileSync } from "node:fs";
const done = [];
for (const path of [${bait}, "/x", "/usr/x", "/etc/passwd", "/etc/x", "/task/x", "/task/attack.mjs", "/dev/x",
  "/dev/shm/x", "/run/x", "/var/x", "/proc/sys/kernel/hostname", "/sys/x", "/tmp/../x", "/tmp/../task/x"]) {
  try { writeFileSync(path, "changed"); done.push(path); } catch {}
}
console.log(JSON.stringify(done));`;
}

function connect(port: number): string {
  return `
let net;
try { net = await import("node:net"); } catch {}
const reach = (host) => new Promise((resolve) => {
  const socket = net.connect(${port}, host, () => resolve(true));
  socket.on("error", () => resolve(false));
});
const reached = net !== undefined && ((await reach("127.0.0.1")) || (await reach("::1")));
console.log(reached || typeof fetch === "function" && await fetch("http://127.0.0.1:${port}/").then(() => true, () => false) ? "reached" : "refused");`;
}

const OPEN_FOLDERS = `
import { readdirSync } from "node:fs";
const found = [];
for (let fd = 3; fd < 1100; fd++) try { found.push(...readdirSync("/proc/self/fd/" + fd + "/")); } catch {}
console.log(JSON.stringify(found));`;

/** The listing's own descriptor is already closed when this check runs. */
const OPEN_DESCRIPTORS = `for fd in /proc/self/fd/*; do [ -e "$fd" ] && printf "%s " "\${fd##*/}"; done; echo`;

const ENVIRONMENT = "console.log(JSON.stringify(Object.keys(process.env)));";

const HOG = "const held = []; for (;;) held.push(new Uint8Array(1 << 20).fill(1));";
