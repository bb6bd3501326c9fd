/** A hostile mix: attacks of every kind among honest programs, several at a time, with each verdict checked. All of it
 *  runs twice; then the host is compared with its earlier state. 2 000 tasks at scale 1, on the strongest available
 *  engine. Forty more processes inherit random descriptors of the host before they open a sandbox, which must not pass
 *  them on. Then agents misbehave in their processes, several at a time among honest agents: each must end as its own
 *  failure. Sometimes the engine itself is killed under a task: the task must end in a typed error, and is retried. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isRollbookError } from "../../src/base/errors.ts";
import { type Rng, rngFrom } from "../../src/base/rng.ts";
import type { Agent, RolloutContext } from "../../src/collect/rollout/agent/agent.ts";
import { endingOfError } from "../../src/collect/rollout/agent/failure.ts";
import { loadAgent } from "../../src/collect/rollout/agent/load-agent.ts";
import { endAgentProcesses } from "../../src/collect/rollout/agent/pool/agent-process.ts";
import { findBubblewrap, type Isolation } from "../../src/collect/rollout/agent/pool/confine.ts";
import { openSandbox } from "../../src/collect/sandbox/open.ts";
import type { Attack } from "../../src/collect/sandbox/probe/attack.ts";
import { faultOf } from "../../src/collect/sandbox/probe/probe.ts";
import { prints } from "../../src/collect/sandbox/probe/result-checks.ts";
import { openWitness, type Witness } from "../../src/collect/sandbox/probe/witness.ts";
import type { Sandbox } from "../../src/collect/sandbox/sandbox.ts";
import { MISDEEDS, OBEDIENT } from "../../test/support/agent-misdeeds.ts";
import { foundWithDescriptors, OPEN_ON } from "../../test/support/inherit-descriptors.ts";
import { attacksFor } from "../../test/support/sandbox-attacks/catalogue.ts";
import type { Campaign } from "../support/programs.ts";

const TASKS = 2_000;
const WORKERS = 4;
/** One task in this many has its engine killed. */
const STRIKE_EVERY = 250;
/** Number of processes that inherit descriptors. */
const INHERITORS = 40;
/** Number of rollouts of agents; half of them are hostile. */
const ROLLOUTS = 400;

export const campaign: Campaign = {
  summary: "a hostile mix of 2 000 sandboxed tasks, every verdict checked, twice; the host stays as it was",
  async run({ scale, seed }) {
    const before = hostState();
    const tally = { passed: 0, failed: 0 };
    for (const round of [1, 2])
      await runRound({ count: Math.ceil(TASKS * scale), rng: rngFrom(seed).split(round), tally });
    await inheritDescriptors({ count: Math.ceil(INHERITORS * scale), rng: rngFrom(seed).split(3), tally });
    await misbehave({ count: Math.ceil(ROLLOUTS * scale), rng: rngFrom(seed).split(4), tally });
    const after = hostState();
    for (const key of Object.keys(before) as (keyof HostState)[])
      report(
        tally,
        `the host's ${key}`,
        before[key] === after[key] ? undefined : `changed from ${before[key]} to ${after[key]}`,
      );
    return tally;
  },
};

interface Tally {
  passed: number;
  failed: number;
}

async function runRound({ count, rng, tally }: { count: number; rng: Rng; tally: Tally }): Promise<void> {
  const witness = await openWitness();
  const sandbox = await openSandbox({ engine: "auto", workers: WORKERS });
  try {
    const tasks = mix({ count, rng, attacks: attacksFor(sandbox, witness), sandbox });
    // As many callers as workers: otherwise the tasks' time limits would include the campaign's own queue.
    let next = 0;
    const caller = async () => {
      for (let i = next++; i < tasks.length; i = next++) {
        const strike = sandbox.engine === "bubblewrap" && i % STRIKE_EVERY === STRIKE_EVERY - 1;
        const fault = strike ? await struckTask(sandbox) : await faultOfTask(sandbox, tasks[i]!, witness);
        report(tally, tasks[i]!.name, fault);
      }
    };
    await Promise.all(Array.from({ length: WORKERS }, caller));
    report(tally, "the witness", witness.findings()[0]);
  } finally {
    await sandbox.close();
    await witness.close();
  }
}

async function inheritDescriptors({
  count,
  rng,
  tally,
}: {
  count: number;
  rng: Rng;
  tally: Tally;
}): Promise<void> {
  const { engine, ...sandbox } = await openSandbox({ engine: "auto", workers: 1 });
  await sandbox.close();
  for (let trial = 0; trial < count; trial++) {
    const draw = rng.split(trial);
    const fds = new Set(
      Array.from({ length: 1 + draw.below(12) }, () => 3 + draw.below(draw.below(2) ? 30 : 1000)),
    );
    const inherited = [...fds].map((fd) => ({ fd, on: OPEN_ON[draw.below(OPEN_ON.length)]! }));
    const found = await foundWithDescriptors(engine, inherited);
    report(tally, `descriptors ${JSON.stringify(inherited)}`, found === "" ? undefined : found);
  }
}

async function misbehave({ count, rng, tally }: { count: number; rng: Rng; tally: Tally }): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "rollbook-campaign-agents-"));
  try {
    const path = join(folder, "agent.mjs");
    writeFileSync(path, OBEDIENT);
    const isolations = ["process", ...(findBubblewrap() === undefined ? [] : ["bubblewrap"])] as Isolation[];
    const agents = await Promise.all(isolations.map((isolation) => loadAgent(path, { isolation })));
    const deeds = Object.entries(MISDEEDS);
    let next = 0;
    const caller = async () => {
      for (let i = next++; i < count; i = next++) {
        const draw = rng.split(i);
        const [deed, code] = deeds[draw.below(deeds.length)]!;
        const agent = agents[draw.below(agents.length)]!;
        const hostile = i % 2 === 0;
        const ran = await ranAgent(agent, hostile ? code : `return ${i}`);
        const held = hostile ? ran === "failed by the agent" : ran === i;
        report(
          tally,
          `an agent that ${hostile ? deed : "is honest"}`,
          held ? undefined : `ended as ${String(ran)}`,
        );
      }
    };
    await Promise.all(Array.from({ length: WORKERS }, caller));
  } finally {
    endAgentProcesses();
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    rmSync(folder, { recursive: true, force: true });
  }
}

async function ranAgent(agent: Agent, code: string): Promise<unknown> {
  const context: RolloutContext = {
    ...{ rolloutId: "r", sample: 0, attempt: 1, seed: 0n, rng: rngFrom(0n) },
    signal: AbortSignal.timeout(5_000),
    rolloutConfig: { exp_id: "campaign", input_id: "t" },
    nextTurn: () => 1,
    log: () => {},
  };
  return agent.run({ code }, context).catch((error: unknown) => {
    const ending = endingOfError(error);
    return ending.kind === "failed" ? `failed by the ${ending.owner}` : ending.kind;
  });
}

/** Half attacks, each kind about equally often; half honest programs with a known answer. */
function mix({
  count,
  rng,
  attacks,
  sandbox,
}: {
  count: number;
  rng: Rng;
  attacks: Attack[];
  sandbox: Sandbox;
}): Attack[] {
  return Array.from({ length: count }, (_, i) => {
    const draw = rng.split(i);
    return i % 2 === 0 ? attacks[draw.below(attacks.length)]! : honest(draw, sandbox);
  });
}

function honest(rng: Rng, sandbox: Sandbox): Attack {
  const [a, b] = [rng.below(1_000_000), rng.below(1_000_000)];
  const usePython = sandbox.runs.has("python") && rng.below(2) === 0;
  const source = usePython ? `print(${a} + ${b})` : `console.log(${a} + ${b})`;
  const entry = usePython ? "add.py" : "add.mjs";
  return {
    ...{ name: "an honest program", threat: "leftovers" },
    program: { kind: usePython ? "python" : "javascript", entry },
    files: { [entry]: source },
    limits: {},
    fault: (result) => prints(result, `${a + b}\n`),
  };
}

async function faultOfTask(sandbox: Sandbox, task: Attack, witness: Witness): Promise<string | undefined> {
  return faultOf(task, await sandbox.exec(task.program, task.files, task.limits), witness);
}

/** A program whose engine is killed from outside: first a typed failure, then the right answer on retry. */
async function struckTask(sandbox: Sandbox): Promise<string | undefined> {
  const marker = "30.0625";
  const sleeping = sandbox.exec({ kind: "command", argv: ["sleep", marker] }, {}, { timeoutMs: 60_000 }).then(
    () => "the death of the engine passed for a verdict",
    (error: unknown) => (isRollbookError(error, "sandbox-engine-died") ? undefined : String(error)),
  );
  let struck = 0;
  for (let tries = 0; tries < 500 && struck === 0; tries++) {
    await new Promise((resolve) => setTimeout(resolve, 10));
    struck = strike(marker);
  }
  const fault = await sleeping;
  if (fault !== undefined) return fault;
  const again = await sandbox.exec({ kind: "command", argv: ["echo", "again"] });
  return prints(again, "again\n");
}

/** Kills the bwrap processes whose command line ends with this program. */
function strike(marker: string): number {
  const { stdout } = spawnSync(
    "pgrep",
    ["-P", String(process.pid), "-f", `^/usr/bin/bwrap .* sleep ${marker}$`],
    { encoding: "utf8" },
  );
  const pids = stdout.split("\n").filter(Boolean).map(Number);
  for (const pid of pids) process.kill(pid, "SIGKILL");
  return pids.length;
}

/** Host state that a task could have changed, and our own leftovers. Other programs may run at the same time. */
interface HostState {
  readonly groups: string;
  readonly folders: string;
  readonly children: string;
  readonly mounts: string;
  readonly hostname: string;
  readonly files: string;
}

function hostState(): HostState {
  const ours = new RegExp(`^rollbook-[0-9a-f]{8}-${process.pid}-`);
  const roots = ["", "memory", "pids", "cpu", "cpuacct"].map((name) => join("/sys/fs/cgroup", name));
  const names = (folder: string) => tolerate(() => readdirSync(folder).sort(), []);
  const children = spawnSync("pgrep", ["-P", String(process.pid), "-x", "bwrap|sh|setpriv"], {
    encoding: "utf8",
  }).stdout;
  return {
    groups: roots.flatMap((root) => names(root).filter((name) => ours.test(name))).join(" "),
    folders: names(join(tmpdir(), `rollbook-sandbox-${process.getuid?.()}`))
      .filter((name) => ours.test(name))
      .join(" "),
    children: children.trim(),
    mounts: readFileSync("/proc/self/mountinfo", "utf8")
      .split("\n")
      .filter((line) => line.includes("rollbook-sandbox"))
      .join("; "),
    hostname: readFileSync("/proc/sys/kernel/hostname", "utf8").trim(),
    files: [...names("/"), ...names("/usr"), readFileSync("/etc/passwd", "utf8")].join(" "),
  };
}

/** Processes and mounts come and go during the check: a missing one counts as `otherwise`. */
function tolerate<T>(look: () => T, otherwise: T): T {
  try {
    return look();
  } catch (error) {
    if (["ENOENT", "ESRCH"].includes((error as NodeJS.ErrnoException).code ?? "")) return otherwise;
    throw error;
  }
}

function report(tally: Tally, name: string, fault: string | undefined): void {
  if (fault === undefined) {
    tally.passed++;
    return;
  }
  tally.failed++;
  process.stderr.write(`sandbox campaign: ${name}: ${fault}\n`);
}
