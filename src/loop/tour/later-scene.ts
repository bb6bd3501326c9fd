/** Scene 3: facts that arrive after a rollout was sealed: late feedback, verdicts, a release. */
import { type Digest, parseId } from "../../base/index.ts";
import { Feedback, QuarantineRelease, type SealedRollout, seal, Verdict } from "../../contract/index.ts";
import { makeSealer } from "../../store/index.ts";
import type { TourScene } from "./stage.ts";
import { UNLABELLED } from "./world.ts";

const AT_MS = 1_700_001_000_000;

export const laterScene: TourScene = {
  title: "later news",
  async play({ book, signer, rollouts }) {
    const subject = (index: number): Digest => (rollouts[index] as SealedRollout).content.digest;
    const feedback = seal(Feedback, {
      subject: subject(UNLABELLED),
      name: parseId("accepted"),
      value: 1,
      source: "user",
      idempotencyKey: "ticket-1",
      atMs: AT_MS,
    });
    const kept = verdict(subject(11), "final-state-mismatch");
    const freed = verdict(subject(12), "timer-integrity-mismatch");
    const release = seal(QuarantineRelease, {
      subject: subject(12),
      verdict: freed.digest,
      by: parseId("maintainer"),
      reason: "the clock of worker-1 was wrong, the answer is not",
      atMs: AT_MS + 2,
    });
    const sealer = makeSealer(book, signer);
    const records = [feedback, kept, freed, release];
    await Promise.all(records.map((record) => sealer.add({ envelope: record, blobs: [record] })));
    return {
      lines: [
        "r-0008 gets its reward from a user; r-0012 and r-0013 are quarantined, r-0013 is released again",
      ],
      proved: "late outcomes and judgements add records; nothing sealed is edited",
      data: { feedback: feedback.digest, verdicts: [kept.digest, freed.digest], release: release.digest },
    };
  },
};

function verdict(subject: Digest, code: Verdict["codes"][number]) {
  return seal(Verdict, {
    subject,
    validator: parseId("validator-1"),
    disposition: "quarantined",
    weightBps: 10_000,
    codes: [code],
    observations: [{ name: parseId("checked"), observed: true }],
    atMs: AT_MS + 1,
  });
}
