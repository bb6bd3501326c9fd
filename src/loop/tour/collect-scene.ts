/** Scenes 1 and 2: revisions and their checkpoints, then rollouts, sealed and signed. */

import { sealRollout } from "../../contract/index.ts";
import { makeSealer } from "../../store/index.ts";
import { plural, short } from "../../view/format.ts";
import type { TourScene } from "./stage.ts";
import { SAMPLES, TASKS } from "./world.ts";

export const revisionsScene: TourScene = {
  title: "revisions",
  async play({ book, signer, world }) {
    const all = [...world.writers, ...world.routers];
    for (const { checkpoint, record } of all) {
      book.put(checkpoint.kind, checkpoint.bytes);
      book.put(record.kind, record.bytes);
    }
    const attestation = signer.attest(all.map(({ record }) => record.digest));
    book.put(attestation.kind, attestation.bytes);
    await book.flush();
    const line = (family: readonly (typeof all)[number][]) =>
      family.map(({ record }) => `${record.record.id} (${short(record.record.digest)})`).join(" → ");
    return {
      lines: [line(world.writers), line(world.routers)],
      proved: "each revision is bound to the bytes of its checkpoint and to its parent",
      data: { revisions: all.map(({ record }) => ({ id: record.record.id, record: record.digest })) },
    };
  },
};

export const rolloutsScene: TourScene = {
  title: "rollouts",
  async play({ book, signer, world, rollouts }) {
    const sealer = makeSealer(book, signer);
    const plain = [...world.tasks, ...world.assignments];
    await Promise.all(plain.map((record) => sealer.add({ envelope: record, blobs: [record] })));
    for (const draft of world.drafts) rollouts.push(sealRollout(draft));
    await Promise.all(rollouts.map((rollout) => sealer.add(rollout)));
    const endings = new Map<string, number>();
    for (const { ending } of world.drafts) {
      const name = ending.kind === "failed" ? `failed by ${ending.owner}` : ending.kind;
      endings.set(name, (endings.get(name) ?? 0) + 1);
    }
    return {
      lines: [
        `${plural(rollouts.length, "rollout")}: ${TASKS} tasks × ${SAMPLES} samples, each a router's choice and a writer's tokens`,
        [...endings].map(([name, count]) => `${count} ${name}`).join(", "),
      ],
      proved: "every choice is recorded with its probability, sealed by content, and signed",
      data: { rollouts: rollouts.map(({ content }) => content.digest), endings: Object.fromEntries(endings) },
    };
  },
};
