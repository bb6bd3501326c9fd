/** A book, a queue and a key in their own folder, for tests that run rollouts. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { digestJson, parseId, rngFrom, systemClock } from "../../src/base/index.ts";
import { openSqliteQueue } from "../../src/collect/queue/sqlite-queue.ts";
import {
  functionAgent,
  type RolloutDefinition,
  type RolloutFunction,
} from "../../src/collect/rollout/agent/agent.ts";
import { type Launch, type LaunchOptions, launch } from "../../src/collect/rollout/launch/launcher.ts";
import type { RolloutResult } from "../../src/collect/rollout/launch/result.ts";
import { newKeyPem, signerFromPem } from "../../src/contract/index.ts";
import { openBook } from "../../src/store/index.ts";

export type WorldOptions = Partial<Omit<LaunchOptions, "agent" | "book" | "queue">>;

/** `ttlMs` is the time before claims of a dead worker are released. It is long, because a busy machine may delay
 *  heartbeats. */
export async function launchWorld({ ttlMs = 20_000 }: { ttlMs?: number } = {}) {
  const folder = mkdtempSync(join(tmpdir(), "rollbook-launch-"));
  const book = await openBook(join(folder, "book"), { clock: systemClock });
  const queue = openSqliteQueue(join(folder, "queue.db"), { clock: systemClock, ttlMs });
  const signer = signerFromPem(newKeyPem());
  onTestFinished(async () => {
    await queue.close();
    await book.close();
    rmSync(folder, { recursive: true, force: true });
  });
  const start = (
    rows: Iterable<unknown>,
    run: RolloutFunction | RolloutDefinition,
    options: WorldOptions = {},
  ): Launch =>
    launch(rows, {
      exp: "test",
      samples: 1,
      seed: 1n,
      environment: "env.test@1" as LaunchOptions["environment"],
      dataSource: "synthetic",
      clock: systemClock,
      rng: rngFrom(1n),
      worker: parseId("worker-1"),
      concurrency: 4,
      heartbeatMs: 500,
      retryBaseMs: 1,
      signer,
      book,
      queue,
      ...options,
      agent: functionAgent(run, { name: "agent.ts", digest: digestJson("test.agent.v1", "agent") }),
    });
  return { folder, book, queue, signer, start };
}

export async function collect(launched: AsyncIterable<RolloutResult>): Promise<RolloutResult[]> {
  const results: RolloutResult[] = [];
  for await (const result of launched) results.push(result);
  return results;
}
