import { describe, expect, it } from "vitest";
import { refusalOf } from "../../../test/support/refusal-of.ts";
import { makeRevision, Shelf, weightsOf } from "../../../test/support/shelf.ts";
import { openWorkerServer, rolloutFor, uploadOf } from "../../../test/support/worker-server.ts";
import type { Digest } from "../../base/digest.ts";
import { parseId } from "../../base/ids.ts";
import { LossLedger, openRecord, Receipt, Verdict } from "../../contract/index.ts";
import { assembleBatch } from "../batch/index.ts";
import { checkFreshness, FRESHNESS_PROFILES } from "./freshness.ts";
import {
  freshnessReceipt,
  freshnessVerdict,
  makeAdmission,
  releaseQuarantined,
} from "./freshness-verdict.ts";

const revisions = Array.from({ length: 11 }, (_, n) => makeRevision(`r${n}`, { number: BigInt(n) }));
const find = (key: { id: string }) => revisions.find(({ record }) => record.id === key.id)?.record;
const byRevision = (n: number) => ({ revision: { id: `r${n}`, digest: weightsOf(`r${n}`) } });
const target = revisions[10]!;

/** A shelf with one rollout per source revision, each checked against r10, and a batch of the admitted rollouts. */
async function batchOf(
  sources: readonly number[],
  change: (shelf: Shelf, verdicts: Map<number, Digest>) => void,
) {
  const shelf = new Shelf();
  for (const n of revisions.keys()) shelf.revision(`r${n}`, { number: BigInt(n) });
  const verdicts = new Map<number, Digest>();
  for (const n of sources) {
    const { content, envelope } = shelf.rollout(`from-r${n}`, {}, byRevision(n));
    const [at, budgets] = [{ subject: content.digest, atMs: 2000 }, FRESHNESS_PROFILES.default];
    const { family } = target.record;
    const freshness = checkFreshness({
      content: content.record,
      envelope: envelope.record,
      target: target.record,
      revision: find,
      submittedAtMs: 2000,
      budgets,
    });
    const verdict = freshnessVerdict(freshness, { ...at, family });
    shelf.write(verdict);
    shelf.listed.verdicts.push(verdict.digest);
    verdicts.set(n, verdict.digest);
    expect(freshnessReceipt(freshness, at).record.outcome).toBe(freshness.outcome);
  }
  change(shelf, verdicts);
  const batch = await assembleBatch({
    read: shelf.read,
    write: shelf.write,
    manifest: shelf.manifest(),
    target: target.digest,
    selection: { level: "token" },
    options: { requireVerdict: true },
    seed: 1n,
  });
  const ledger = openRecord(LossLedger, shelf.blobs.get(batch.record.ledger)!.bytes);
  const reasons = Object.fromEntries(ledger.reasons.map(({ reason, artifacts }) => [reason, artifacts]));
  return { rows: batch.record.totals.rows, reasons };
}

describe("freshness decides what reaches a batch", () => {
  it("stale rollouts are in the ledger as stale, quarantined ones as quarantined", async () => {
    expect(await batchOf([10, 9, 7, 6, 5, 4, 0], () => {})).toEqual({
      rows: 3,
      reasons: { quarantined: 2, stale: 2 },
    });
  });

  it("a release lets a quarantined rollout in, and nothing else", async () => {
    const released = await batchOf([10, 6, 5, 4], (shelf, verdicts) => {
      const verdict = sealedVerdict(shelf, verdicts.get(6)!);
      const release = releaseQuarantined(verdict, { by: parseId("owner"), reason: "rare task", atMs: 3000 });
      shelf.write(release);
      shelf.listed.releases.push(release.digest);
      const stale = sealedVerdict(shelf, verdicts.get(4)!);
      const by = { by: parseId("owner"), reason: "no", atMs: 3000 };
      expect(refusalOf(() => releaseQuarantined(stale, by)).code).toBe("bad-record");
    });
    expect(released).toEqual({ rows: 2, reasons: { quarantined: 1, stale: 1 } });
  });

  it("what is both stale and faulty is rejected", async () => {
    const { reasons } = await batchOf([10, 0], (shelf) => {
      const stale = shelf.artifacts.at(-1)!.content;
      shelf.verdict(stale, { disposition: "rejected", weightBps: 0, codes: ["execution-proof-missing"] });
    });
    expect(reasons).toEqual({ rejected: 1 });
  });
});

function sealedVerdict(shelf: Shelf, digest: Digest) {
  const { kind, bytes } = shelf.blobs.get(digest)!;
  return { kind, digest, bytes, record: openRecord(Verdict, bytes) };
}

it("an upload through the worker server is checked against the target of that moment; receipt and verdict agree", async () => {
  let current = target.record;
  const admit = makeAdmission({
    target: () => current,
    revision: find,
    budgets: FRESHNESS_PROFILES.default,
  });
  const { server, book, join } = await openWorkerServer({ admit });
  const worker = join("w1");
  const outcomes: string[] = [];
  for (const claim of await server.claim(worker.session, { limit: 3 })) {
    const rollout = rolloutFor(claim, {}, byRevision(6));
    const { record } = await server.upload(worker.session, uploadOf(claim, rollout, worker.signer));
    outcomes.push(record.outcome);
    current = revisions[Number(current.number) === 10 ? 9 : 6]!.record;
  }
  expect(outcomes).toEqual(["quarantined", "accepted-off-policy", "accepted-exact"]);
  const kept: string[] = [];
  for await (const blob of book.scan()) {
    if (blob.type !== "blob") continue;
    if (blob.kind === Verdict.kind) kept.push(openRecord(Verdict, blob.bytes).disposition);
    if (blob.kind === Receipt.kind) kept.push(openRecord(Receipt, blob.bytes).outcome);
  }
  expect(kept.sort()).toEqual(["accepted", "accepted", "quarantined", ...outcomes].sort());
});
