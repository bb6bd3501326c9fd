/** The cost of a separate process per agent: the same rollout in the launcher, in a pooled process, and in a pooled
 *  process under bubblewrap, in turns. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { rngFrom } from "../src/base/rng.ts";
import type { Agent, RolloutContext } from "../src/collect/rollout/agent/agent.ts";
import { loadAgent } from "../src/collect/rollout/agent/load-agent.ts";
import { findBubblewrap, type Isolation } from "../src/collect/rollout/agent/pool/confine.ts";
import { median, printTable } from "./support/interleave.ts";
import type { Bench } from "./support/programs.ts";

const ROUNDS = 500;
const AGENT =
  "export default async (payload, { rng }) => ({ reward: rng.float(), finalState: { answer: payload.question } });\n";

export const bench: Bench = {
  summary:
    "milliseconds that a pooled process adds to a rollout, with and without bubblewrap, and to start one",
  async run(args) {
    const folder = mkdtempSync(join(tmpdir(), "rollbook-bench-agents-"));
    try {
      const path = join(folder, "agent.mjs");
      writeFileSync(path, AGENT);
      const ways: readonly Isolation[] = [
        "none",
        "process",
        ...(findBubblewrap() === undefined ? [] : ["bubblewrap" as const]),
      ];
      const loaded = await Promise.all(ways.map((isolation) => load(path, isolation)));
      const times = loaded.map(() => [] as number[]);
      for (let round = 0; round < ROUNDS; round++)
        for (const [i, { agent }] of loaded.entries())
          times[i]!.push(await timed(() => rollout(agent, round)));
      const base = median(times[0]!);
      printTable(
        ways.map((isolation, i) => ({
          isolation,
          "p50 ms": figure(median(times[i]!)),
          "p99 ms": figure(times[i]!.sort((a, b) => a - b)[Math.floor(ROUNDS * 0.99)]!),
          "added p50 ms": figure(median(times[i]!) - base),
          "start ms": figure(loaded[i]!.startMs),
          bar: isolation === "none" ? "" : "added ≤ 10 ms",
        })),
        args,
      );
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  },
};

async function load(path: string, isolation: Isolation): Promise<{ agent: Agent; startMs: number }> {
  const began = performance.now();
  const agent = await loadAgent(path, { isolation });
  return { agent, startMs: performance.now() - began };
}

async function rollout(agent: Agent, sample: number): Promise<void> {
  const seed = BigInt(sample);
  const context: RolloutContext = {
    ...{ rolloutId: `r-${sample}`, sample, attempt: 1, seed, rng: rngFrom(seed) },
    signal: new AbortController().signal,
    rolloutConfig: { exp_id: "bench", input_id: "t" },
    nextTurn: () => 1,
    log: () => {},
  };
  await agent.run({ question: "x".repeat(2_000) }, context);
}

async function timed(work: () => Promise<void>): Promise<number> {
  const began = performance.now();
  await work();
  return performance.now() - began;
}

function figure(ms: number): number {
  return Math.round(ms * 1000) / 1000;
}
