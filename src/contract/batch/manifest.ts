/** A sealed set of artifacts and of the records that decide their admission. A batch is a function of its manifest. */
import * as z from "zod";
import type { Digest } from "../../base/index.ts";
import { defineRecord, digest, type RecordOf, refuse, type Sealed, seal } from "../codec/index.ts";

const MANY = 10_000_000;

const LISTS = ["revisions", "verdicts", "releases", "feedback", "receipts"] as const;

export const Manifest = defineRecord({
  kind: "rollbook.manifest.v1",
  summary:
    "A set of artifacts (content and envelope), the revisions behind them, verdicts, releases, feedback, receipts.",
  shape: {
    artifacts: z.array(z.strictObject({ content: digest, envelope: digest })).max(MANY),
    revisions: z.array(digest).max(MANY),
    verdicts: z.array(digest).max(MANY),
    releases: z.array(digest).max(MANY),
    feedback: z.array(digest).max(MANY),
    /** Receipts from the submission of the artifacts. */
    receipts: z.optional(z.array(digest).max(MANY)),
  },
  references: (manifest) => [
    ...manifest.artifacts.flatMap(({ content, envelope }, i) => [
      { digest: content, kind: "rollbook.rollout-content.v1", field: `artifacts[${i}].content` },
      { digest: envelope, kind: "rollbook.rollout-envelope.v1", field: `artifacts[${i}].envelope` },
    ]),
    ...LISTS.flatMap((name) =>
      (manifest[name] ?? []).map((each, i) => ({
        digest: each,
        kind: LISTED_KINDS[name],
        field: `${name}[${i}]`,
      })),
    ),
  ],
  check(manifest) {
    for (let i = 1; i < manifest.artifacts.length; i++) {
      const [before, here] = [manifest.artifacts[i - 1]!.content, manifest.artifacts[i]!.content];
      if (before === here)
        throw refuse(
          "duplicate-artifact",
          { content: here },
          `the rollout ${here} appears twice in the manifest. List each rollout once.`,
        );
      if (before > here)
        throw refuse(
          "bad-record",
          { field: `artifacts[${i}]` },
          "artifacts are not sorted by content digest.",
        );
    }
    for (const name of LISTS) {
      const list = manifest[name] ?? [];
      for (let i = 1; i < list.length; i++) {
        if (list[i - 1]! >= list[i]!)
          throw refuse("bad-record", { field: `${name}[${i}]` }, `${name} are not sorted and unique.`);
      }
    }
  },
});
export type Manifest = RecordOf<typeof Manifest>;

const LISTED_KINDS = {
  revisions: "rollbook.policy-revision.v1",
  verdicts: "rollbook.verdict.v1",
  releases: "rollbook.release.v1",
  feedback: "rollbook.feedback.v1",
  receipts: "rollbook.receipt.v1",
} as const;

/** Sorts its inputs, so that the order of arrival has no effect. Refuses a rollout that is given twice. */
export function sealManifest(parts: {
  artifacts: Iterable<{ content: Digest; envelope: Digest }>;
  revisions: Iterable<Digest>;
  verdicts?: Iterable<Digest>;
  releases?: Iterable<Digest>;
  feedback?: Iterable<Digest>;
  receipts?: Iterable<Digest>;
}): Sealed<Manifest> {
  const receipts = [...(parts.receipts ?? [])];
  const unique = (digests: Iterable<Digest> | undefined) => [...new Set(digests ?? [])].sort();
  return seal(Manifest, {
    artifacts: [...parts.artifacts].sort((a, b) =>
      a.content < b.content ? -1 : a.content > b.content ? 1 : 0,
    ),
    revisions: unique(parts.revisions),
    verdicts: unique(parts.verdicts),
    releases: unique(parts.releases),
    feedback: unique(parts.feedback),
    ...(receipts.length === 0 ? {} : { receipts: unique(receipts) }),
  });
}
