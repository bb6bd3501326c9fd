/** A simulated world with its own book and queue, run to the end. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { parseId, rngFrom, systemClock } from "../../src/base/index.ts";
import { openSqliteQueue } from "../../src/collect/queue/sqlite-queue.ts";
import type { RolloutResult, SealedResult } from "../../src/collect/rollout/launch/result.ts";
import { openSimRun, type SimRunOptions } from "../../src/collect/sim/play/run.ts";
import { newKeyPem, openRecord, RolloutContent, signerFromPem } from "../../src/contract/index.ts";
import { openBook } from "../../src/store/index.ts";

type Given = Pick<SimRunOptions, "world" | "grader"> & Partial<SimRunOptions>;

export async function simBook() {
  const folder = mkdtempSync(join(tmpdir(), "rollbook-sim-"));
  const book = await openBook(join(folder, "book"), { clock: systemClock });
  const queue = openSqliteQueue(join(folder, "queue.db"), { clock: systemClock, ttlMs: 20_000 });
  const signer = signerFromPem(newKeyPem());
  onTestFinished(async () => {
    await queue.close();
    await book.close();
    rmSync(folder, { recursive: true, force: true });
  });
  const optionsOf = (given: Given): SimRunOptions => ({
    ...{ book, queue, signer, clock: systemClock, rng: rngFrom(1n), worker: parseId("worker-1") },
    ...{ samples: 1, seed: 5n, exp: "test", agent: "chat", workers: 4, retryBaseMs: 1 },
    route: { kind: "model", model: given.world.models[0]!.name },
    newId: () => "r-unnamed",
    ...given,
  });
  const run = async (given: Given): Promise<RolloutResult[]> => {
    const { launched, close } = await openSimRun(optionsOf(given));
    try {
      const results: RolloutResult[] = [];
      for await (const result of launched) results.push(result);
      return results;
    } finally {
      await close();
    }
  };
  const contentOf = async ({ content }: SealedResult): Promise<RolloutContent> =>
    openRecord(RolloutContent, (await book.get(content))!.bytes);
  return { folder, book, queue, run, contentOf };
}

export function sealedOnly(results: readonly RolloutResult[]): SealedResult[] {
  return results.filter((each): each is SealedResult => each.state === "sealed");
}
