/** Lineage of a batch: the revisions that its samples came from, and the target revision that it trains. */
import * as z from "zod";
import { compareUtf8 } from "../../base/index.ts";
import { defineRecord, digest, id, type RecordOf, refuse, type Sealed, seal, u64 } from "../codec/index.ts";
import { type PolicyRevision, revisionDrift, revisionKey, standsBefore } from "../policy/index.ts";

const member = z.strictObject({ ...revisionKey.shape, record: digest, number: z.optional(u64) });

export const PolicyRevisionLineage = defineRecord({
  kind: "rollbook.policy-revision-lineage.v1",
  summary:
    "The target revision of a batch and the unique source revisions behind its samples, with their drift.",
  shape: {
    family: id,
    target: member,
    sources: z
      .array(z.strictObject({ ...member.shape, drift: z.nullable(u64) }))
      .min(1)
      .max(100_000),
  },
  references: (lineage) =>
    [lineage.target, ...lineage.sources].map((each) => ({
      digest: each.record,
      kind: "rollbook.policy-revision.v1",
      field: `revision ${each.id}`,
    })),
  check({ family, target, sources }) {
    const drift = (source: { number?: bigint | undefined }) =>
      revisionDrift({ family, number: target.number }, { family, number: source.number }) ?? null;
    for (const [i, source] of sources.entries()) {
      const bad = (message: string) =>
        refuse("bad-record", { field: `sources[${i}]` }, `sources[${i}] ${message}`);
      if (i > 0 && compareUtf8(sources[i - 1]!.id, source.id) >= 0)
        throw bad("is not sorted by the UTF-8 bytes of its id, or appears twice.");
      if (source.drift !== drift(source))
        throw bad(`has drift ${source.drift}, which its number and the target's do not give.`);
    }
  },
});
export type PolicyRevisionLineage = RecordOf<typeof PolicyRevisionLineage>;

/** Sources may repeat and come in any order. The lineage holds them unique, sorted by the UTF-8 bytes of their ids. */
export function sealLineage(
  target: Sealed<PolicyRevision>,
  sources: Iterable<Sealed<PolicyRevision>>,
): Sealed<PolicyRevisionLineage> {
  const unique = new Map<string, Sealed<PolicyRevision>>();
  const all = [...sources];
  for (const source of [target, ...all]) {
    const { family, id: name, digest: weights } = source.record;
    if (family !== target.record.family) {
      throw refuse(
        "policy-family-mismatch",
        { expected: target.record.family, actual: family, revision: name },
        `revision ${name} is of family ${family}, the batch targets ${target.record.family}. Batch each family by itself.`,
      );
    }
    const known = unique.get(name);
    if (known !== undefined && known.record.digest !== weights) {
      throw refuse(
        "revision-conflict",
        { revision: name, digests: [known.record.digest, weights] },
        `revision ${name} appears with two digests, ${known.record.digest} and ${weights}. New weights need a new revision id.`,
      );
    }
    if (known === undefined || standsBefore(source, known)) unique.set(name, source);
  }
  const names = [...new Set(all.map((source) => source.record.id))].sort(compareUtf8);
  return seal(PolicyRevisionLineage, {
    family: target.record.family,
    target: memberOf(target),
    sources: names.map((name) => {
      const source = unique.get(name)!;
      return { ...memberOf(source), drift: revisionDrift(target.record, source.record) ?? null };
    }),
  });
}

function memberOf({ record, digest: recordDigest }: Sealed<PolicyRevision>) {
  return {
    id: record.id,
    digest: record.digest,
    record: recordDigest,
    ...(record.number === undefined ? {} : { number: record.number }),
  };
}
