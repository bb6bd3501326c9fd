/** The refusals: each is a code, thrown for the bad input and not for the good one. The seeded defect is a reader that
 *  does not check its input. */
import { strictEqual as same } from "node:assert";
import { digestJson } from "rollbook/base";
import {
  openRecord,
  PolicyRevision,
  parseRolloutDraft,
  REFUSALS,
  sealLineage,
  sealManifest,
  sealRollout,
} from "rollbook/contract";
import { codeOf, draft, filledShelf, PROOFS, revision, rollout, Shelf, weights } from "./world.mjs";

/** A row with the real reader, one bad input and one good input. */
function refusal(code, { read = sealDraft, bad, good = draft("rollout-a"), believe = () => {} }) {
  return {
    name: `refuses-${code}`,
    claim: `refused: ${REFUSALS[code]}`,
    sound: () => read,
    broken: () => believe,
    async prove(reader) {
      same(await codeOf(() => reader(bad())), code);
      same(await codeOf(() => reader(typeof good === "function" ? good() : good)), "accepted");
    },
  };
}

const sealDraft = (value) => sealRollout(parseRolloutDraft(value));
const assemble = (shelf) => shelf.assemble();
const manifestOf = (artifacts) => sealManifest({ artifacts, revisions: [] });
const open = (bytes) => openRecord(PolicyRevision, bytes);
const text = (value) => Buffer.from(JSON.stringify(value));
const pairOf = ({ content, envelope }) => ({ content: content.digest, envelope: envelope.digest });
const withEnvelope = (proofs) =>
  draft("rollout-a", { envelope: { worker: "w", startedAtMs: 1, endedAtMs: 2, proofs } });

export const refusalRows = [
  refusal("empty-batch", { read: assemble, bad: () => new Shelf(revision(1)), good: filledShelf }),
  refusal("duplicate-artifact", {
    read: manifestOf,
    bad: () => [pairOf(rollout("rollout-a")), pairOf(rollout("rollout-a"))],
    good: () => [pairOf(rollout("rollout-a")), pairOf(rollout("rollout-b"))],
  }),
  refusal("duplicate-proof", {
    bad: () => withEnvelope([...PROOFS["rollout-a"], ...PROOFS["rollout-a"]]),
    good: () => withEnvelope(PROOFS["rollout-b"]),
  }),
  refusal("revision-conflict", {
    read: (sources) => sealLineage(revision(3), sources),
    bad: () => [revision(1), revision(1, { digest: weights("other weights") })],
    good: () => [revision(1), revision(1), revision(2)],
  }),
  refusal("unknown-revision", {
    read: assemble,
    bad: () => new Shelf(rollout("rollout-a")),
    good: filledShelf,
  }),
  refusal("digest-mismatch", {
    bad: () => draft("rollout-a", { contentDigest: digestJson("claims.forged", 1) }),
    good: () => draft("rollout-a", { contentDigest: rollout("rollout-a").content.digest }),
  }),
  refusal("not-canonical", {
    read: open,
    bad: () => Buffer.concat([Buffer.from(" "), revision(1).bytes]),
    good: () => revision(1).bytes,
  }),
  refusal("non-finite-number", {
    bad: () => draft("rollout-a", {}, { logprobs: [Number.NaN, 0] }),
  }),
  refusal("length-mismatch", { bad: () => draft("rollout-a", {}, { logprobs: [0] }) }),
  refusal("bad-mask", { bad: () => draft("rollout-a", {}, { mask: [2, 1] }) }),
  refusal("bad-id", { bad: () => draft("../rollout|a@b") }),
  refusal("unknown-schema", {
    read: open,
    bad: () => text({ schema: "rollbook.policy-revision.v9" }),
    good: () => revision(1).bytes,
  }),
  refusal("bad-record", { bad: () => draft("rollout-a", { unknownField: 1 }) }),
];
