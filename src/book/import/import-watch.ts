/** Warns about imports that may cause a surprise later: rollouts of a revision without a record, and one rollout id
 *  with two contents.
 *  In: records as they enter. Out: warnings, after all records are seen. Refuses nothing. */
import { type Digest, plural } from "../../base/index.ts";
import { PolicyRevision, RolloutContent, type Sealed } from "../../contract/index.ts";
import type { BookIndex, IndexedRecord } from "../open/index.ts";
import type { Prepared } from "./prepare.ts";

export interface ImportWarning {
  readonly code: "unrecorded-revision" | "two-contents" | "cost-not-kept" | "mixed-costs";
  readonly fields: Readonly<Record<string, unknown>>;
  readonly message: string;
}

export class ImportWatch {
  readonly #index: BookIndex;
  readonly #recorded = new Set<string>();
  /** Revisions that samples name, and the rollouts of these samples. */
  readonly #named = new Map<string, { family: string; id: string; rollouts: Set<string> }>();
  /** Content of each rollout id in each family. */
  readonly #contents = new Map<string, Digest>();
  readonly #twins: ImportWarning[] = [];

  constructor(index: BookIndex) {
    this.#index = index;
    for (const { family, id } of index.ofKind(PolicyRevision.kind)) this.#recorded.add(`${family}/${id}`);
  }

  see({ content, records }: Prepared): void {
    for (const { kind, record } of records) {
      if (kind !== PolicyRevision.kind) continue;
      const { family, id } = record as PolicyRevision;
      this.#recorded.add(`${family}/${id}`);
    }
    if (content === undefined) return;
    this.#seeRevisions(content.record);
    this.#seeTwin(content);
  }

  /** A revision may come after its rollouts, so missing records are only known at the end. */
  warnings(): ImportWarning[] {
    const unrecorded = [...this.#named].filter(([key]) => !this.#recorded.has(key));
    return [...this.#twins, ...unrecorded.map(([, named]) => unrecordedRevision(named))];
  }

  #seeRevisions({ rolloutId, streams }: RolloutContent): void {
    for (const stream of streams) {
      for (const { revision } of stream.level === "token" ? stream.segments : stream.steps) {
        const key = `${stream.family}/${revision.id}`;
        const named = this.#named.get(key) ?? { family: stream.family, id: revision.id, rollouts: new Set() };
        this.#named.set(key, named);
        if (!this.#recorded.has(key)) named.rollouts.add(rolloutId);
      }
    }
  }

  #seeTwin({ digest, record }: Sealed<RolloutContent>): void {
    const { rolloutId, streams } = record;
    const keys = [...new Set(streams.map(({ family }) => `${family}/${rolloutId}`))];
    const inFile = keys.flatMap((key) => this.#contents.get(key) ?? []);
    const known = inFile.find((each) => each !== digest) ?? this.#otherInBook(record, digest);
    for (const key of keys) this.#contents.set(key, digest);
    if (known === undefined || inFile.includes(digest)) return;
    this.#twins.push({
      code: "two-contents",
      fields: { rolloutId, digests: [known, digest] },
      message: `rollout ${rolloutId} has two contents of one policy family, ${known} and ${digest}: both are in the book, and only the one with the smaller digest is used. Give each run an id of its own.`,
    });
  }

  #otherInBook(record: RolloutContent, digest: Digest): Digest | undefined {
    const { rolloutId } = record;
    return this.#index
      .named(rolloutId)
      .find(
        (each) =>
          each.kind === RolloutContent.kind &&
          each.id === rolloutId &&
          each.digest !== digest &&
          sharesFamily(record, each),
      )?.digest;
  }
}

/** True if a selection by family could include both contents. */
export function sharesFamily(
  { streams }: Pick<RolloutContent, "streams">,
  other: IndexedRecord | undefined,
): boolean {
  const families = (other?.fields.families ?? []) as string[];
  return streams.some(({ family }) => families.includes(family));
}

function unrecordedRevision(named: { family: string; id: string; rollouts: Set<string> }): ImportWarning {
  const { family, id: revision } = named;
  const rollouts = [...named.rollouts];
  const which = rollouts.length === 1 ? rollouts[0]! : `${rollouts[0]!} and ${rollouts.length - 1} more`;
  return {
    code: "unrecorded-revision",
    fields: { family, revision, rollouts: rollouts.slice(0, 20), count: rollouts.length },
    message: `revision ${revision} of ${family} has no record in the book, and no batch can be cut with ${plural(rollouts.length, "rollout")} of it (${which}). Import its rollbook.policy-revision.v1 record, or leave them out with \`rollbook batch assemble --exclude\`.`,
  };
}
