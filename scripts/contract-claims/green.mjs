/** "Green only if all of the following are true." */
import { notStrictEqual as differs, deepStrictEqual as equal, ok, strictEqual as same } from "node:assert";
import { digestJson, parseJson } from "rollbook/base";
import {
  inlineRollout,
  PolicyRevision,
  PolicyRevisionLineage,
  parseRolloutDraft,
  seal,
  sealRollout,
} from "rollbook/contract";
import {
  codeOf,
  draft,
  FAMILY,
  filledShelf,
  revision,
  rollout,
  Shelf,
  stepStream,
  weights,
} from "./world.mjs";

export const greenRows = [
  {
    name: "typed-serializable",
    claim:
      "rollout artifacts are typed and serializable: JSON and back is the same artifact, a wrong type is refused",
    sound: () => (value) => parseRolloutDraft(value),
    broken: () => (value) => ({
      ...value,
      seed: BigInt(value.seed),
      streams: value.streams.map((each) => ({ ...each, rewards: undefined })),
    }),
    async prove(parse) {
      const shelf = filledShelf();
      const [pair] = shelf.artifacts;
      const text = JSON.stringify(await inlineRollout(shelf.read, pair));
      const again = sealRollout(parse(parseJson(text)));
      equal({ content: again.content.digest, envelope: again.envelope.digest }, pair);
      same(await codeOf(() => parse(draft("rollout-a", { seed: 7 }))), "bad-record");
    },
  },
  {
    name: "carries-source-and-proof",
    claim: "each artifact carries its source policy revision and proof-bearing references",
    sound: () => [rollout("rollout-a"), rollout("rollout-b")],
    broken: () => [rollout("rollout-a"), rollout("unproven")],
    prove(rollouts) {
      for (const { content, envelope } of rollouts) {
        ok(envelope.record.proofs.length > 0, `${content.record.rolloutId} bears no proof`);
        for (const { revision: source } of content.record.streams.flatMap((stream) => stream.segments))
          same(source.digest, weights(source.id));
      }
      equal(
        rollouts.map(({ content }) => content.record.streams[0].segments[0].revision.id),
        ["policy-r1", "policy-r2"],
      );
    },
  },
  {
    name: "lineage-not-metadata",
    claim: "lineage is a sealed record of its own that binds weights, not ad hoc metadata",
    sound: () => lineageDigest,
    broken: () => async (shelf) =>
      digestJson(
        "ad-hoc",
        (await sourcesOf(shelf)).map(({ id }) => id),
      ),
    async prove(digestOf) {
      const plain = await digestOf(filledShelf());
      const relabelled = rollout("rollout-a", { sampling: { temperature: 0.5, note: "policy-r9" } });
      same(
        await digestOf(new Shelf(revision(1), revision(2), relabelled, rollout("rollout-b"))),
        plain,
        "metadata changes the lineage",
      );
      const other = { digest: weights("other weights") };
      const swapped = rollout("rollout-a", {}, { revision: { id: "policy-r1", ...other } });
      differs(
        await digestOf(new Shelf(revision(1, other), revision(2), swapped, rollout("rollout-b"))),
        plain,
        "the lineage does not bind weights",
      );
    },
  },
  {
    name: "cross-family-refused",
    claim: "a mix of policy families is refused explicitly",
    sound: () => ({ level: "token" }),
    // Selecting a family by name excludes the other family. Without a selection, that must not happen.
    broken: () => ({ level: "token", family: FAMILY }),
    async prove(selection) {
      const stranger = rollout("stranger", {}, { family: "other.decoder" });
      const own = seal(PolicyRevision, {
        family: "other.decoder",
        id: "policy-r1",
        digest: weights("policy-r1"),
        producedAtMs: 1,
      });
      same(await codeOf(() => filledShelf(stranger, own).assemble({ selection })), "policy-family-mismatch");
    },
  },
  {
    name: "empty-artifact-refused",
    claim: "an empty rollout artifact is refused explicitly",
    sound: () => [{ ids: [], logprobs: [], rewards: [], advantages: [] }, { mask: [0, 0] }],
    broken: () => [{ mask: [0, 1] }],
    async prove(streams) {
      for (const stream of streams)
        same(await codeOf(() => rollout("rollout-a", {}, stream)), "empty-samples");
      same(
        await codeOf(() => rollout("rollout-a", { streams: [{ ...stepStream(), steps: [] }] })),
        "bad-record",
      );
    },
  },
];

async function lineageDigest(shelf) {
  const { record } = await shelf.assemble();
  same(shelf.blobs.get(record.lineage).kind, PolicyRevisionLineage.kind);
  return record.lineage;
}

async function sourcesOf(shelf) {
  return shelf.open(await lineageDigest(shelf)).sources;
}
