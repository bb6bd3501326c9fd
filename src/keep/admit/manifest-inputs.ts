/** Inputs of a selection beside the artifacts of a manifest: judgements, late labels, and revision records.
 *  In: a manifest, a family. Out: records, each checked. */
import type { Digest, Id } from "../../base/index.ts";
import {
  Feedback,
  type Manifest,
  nameRevision,
  PolicyRevision,
  QuarantineRelease,
  type ReadBlob,
  Receipt,
  type RecordType,
  type RevisionKey,
  refuse,
  type Sealed,
  standsBefore,
  Verdict,
} from "../../contract/index.ts";
import { type LateReward, lateRewards } from "./labels.ts";
import { readSealed } from "./read-sources.ts";

export interface ManifestInputs {
  readonly family: Id;
  readonly revisions: KnownRevisions;
  readonly verdicts: Sealed<Verdict>[];
  readonly releases: QuarantineRelease[];
  readonly receipts: Sealed<Receipt>[];
  readonly late: ReadonlyMap<Digest, LateReward[]>;
}

export async function readInputs(
  read: ReadBlob,
  manifest: Manifest,
  options: {
    family: Id;
    target: Sealed<PolicyRevision> | undefined;
    feedback: string | undefined;
    unrecorded: "refuse" | "name";
  },
): Promise<ManifestInputs> {
  const { family, target, feedback: name, unrecorded } = options;
  const all = <T extends RecordType>(type: T, digests: readonly Digest[] = []) =>
    Promise.all(digests.map((each) => readSealed(read, type, each)));
  const recorded = await all(PolicyRevision, manifest.revisions);
  const own = [...(target === undefined ? [] : [target]), ...recorded].filter(
    ({ record }) => record.family === family,
  );
  return {
    family,
    revisions: new KnownRevisions(own, { family, unrecorded }),
    verdicts: await all(Verdict, manifest.verdicts),
    releases: (await all(QuarantineRelease, manifest.releases)).map(({ record }) => record),
    receipts: await all(Receipt, manifest.receipts),
    late: lateRewards(await all(Feedback, manifest.feedback), name),
  };
}

/** Revisions of one family by id. An id with two digests is refused only if a sample uses it. */
class KnownRevisions {
  readonly #family: Id;
  readonly #unrecorded: "refuse" | "name";
  readonly #known = new Map<string, Sealed<PolicyRevision>[]>();

  constructor(
    records: readonly Sealed<PolicyRevision>[],
    { family, unrecorded }: { family: Id; unrecorded: "refuse" | "name" },
  ) {
    this.#family = family;
    this.#unrecorded = unrecorded;
    for (const each of records) this.#add(each);
  }

  /** Record of the revision with exactly these weights, or undefined. */
  record({ id, digest }: RevisionKey): PolicyRevision | undefined {
    return this.#known.get(id)?.find(({ record }) => record.digest === digest)?.record;
  }

  /** Revision that a sample of `artifact` names. */
  find(key: RevisionKey, artifact: Digest): Sealed<PolicyRevision> {
    const known = this.#known.get(key.id) ?? [];
    const digests = [...new Set([...known.map(({ record }) => record.digest), key.digest])];
    if (digests.length > 1)
      throw refuse(
        "revision-conflict",
        { revision: key.id, digests },
        `revision ${key.id} appears with two digests, ${digests[0]} and ${digests[1]}. New weights need a new revision id.`,
      );
    if (known.length > 0) return known[0]!;
    if (this.#unrecorded === "refuse")
      throw refuse(
        "unknown-revision",
        { revision: key.id, artifact },
        `rollout ${artifact} was sampled by revision ${key.id}, which has no record in the manifest. Import the revision first, or leave the rollout out (\`rollbook batch assemble --exclude\`).`,
      );
    const named = nameRevision(this.#family, key);
    this.#add(named);
    return named;
  }

  /** Among several records of the same weights, the most complete one comes first. */
  #add(revision: Sealed<PolicyRevision>): void {
    const known = this.#known.get(revision.record.id) ?? [];
    const same = known.findIndex(({ record }) => record.digest === revision.record.digest);
    if (same < 0) known.push(revision);
    else if (standsBefore(revision, known[same]!)) known[same] = revision;
    this.#known.set(revision.record.id, known);
  }
}
