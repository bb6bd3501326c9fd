/** Answers what a book holds: its rollouts, one rollout with everything said of it, its policy revisions.
 *  In: an open book, filters or a name. Out: rows and records. Writes nothing. */
import type { Digest } from "../../base/index.ts";
import {
  Attestation,
  Feedback,
  inlineRollout,
  type Level,
  Receipt,
  Release,
  RolloutContent,
  RolloutEnvelope,
  Verdict,
} from "../../contract/index.ts";
import { readRecord } from "../../store/index.ts";
import {
  artifactsOf,
  type BookIndex,
  type IndexedArtifact,
  type IndexedRecord,
  type OpenBook,
  resolveArtifact,
  revisionsIn,
} from "../open/index.ts";

export interface RolloutQuery {
  /** With a stream of this policy family. */
  readonly family?: string | undefined;
  readonly group?: string | undefined;
  readonly task?: string | undefined;
  /** terminal, truncated, cancelled, failed, or a failure of one owner: failed-provider. */
  readonly ending?: string | undefined;
  readonly limit?: number | undefined;
}

export interface RolloutRow {
  readonly rolloutId: string;
  /** The digest of its content. */
  readonly content: Digest;
  /** One for each time it was run. */
  readonly envelopes: readonly Digest[];
  readonly environment: string;
  readonly task: string;
  readonly group: string | null;
  readonly dataSource: "real" | "synthetic";
  readonly ending: string;
  readonly families: readonly string[];
  readonly levels: readonly Level[];
  readonly samples: number;
  readonly calls: number;
  /** Null: unlabelled. */
  readonly score: number | null;
}

export interface RolloutDetails {
  readonly digest: Digest;
  readonly content: RolloutContent;
  readonly envelopes: readonly { digest: Digest; envelope: RolloutEnvelope; signers: readonly string[] }[];
  /** Records that say something about it: receipts, feedback, verdicts, releases. */
  readonly about: readonly IndexedRecord[];
}

/** Sorted by rollout id. */
export async function listRollouts(book: OpenBook, query: RolloutQuery = {}): Promise<RolloutRow[]> {
  const rows = artifactsOf(await book.index()).map(rowOf);
  return rows.filter((row) => matches(row, query)).slice(0, query.limit);
}

/** One record for each policy revision. */
export async function listRevisions(
  book: OpenBook,
  { family, limit }: Pick<RolloutQuery, "family" | "limit"> = {},
): Promise<IndexedRecord[]> {
  const revisions = revisionsIn(await book.index());
  return revisions.filter((each) => family === undefined || each.family === family).slice(0, limit);
}

/** By rollout id, digest, or the first digits of one. */
export async function showRollout(book: OpenBook, name: string): Promise<RolloutDetails> {
  const index = await book.index();
  const { content, envelopes } = resolveArtifact(index, name);
  return {
    digest: content.digest,
    content: await readRecord(book.store, RolloutContent, content.digest),
    envelopes: await Promise.all(
      envelopes.map(async (digest) => ({
        digest,
        envelope: await readRecord(book.store, RolloutEnvelope, digest),
        signers: await signersOf(book, index, digest),
      })),
    ),
    about: [Receipt, Feedback, Verdict, Release].flatMap(({ kind }) =>
      index.ofKind(kind).filter(({ fields }) => fields.subject === content.digest),
    ),
  };
}

/** In the exchange form, which import reads back: one for each envelope, so a rollout that was run twice gives two. */
export async function exportRollout(
  book: OpenBook,
  name: string,
): Promise<Awaited<ReturnType<typeof inlineRollout>>[]> {
  const { content, envelopes } = resolveArtifact(await book.index(), name);
  const read = (digest: Digest) => book.store.get(digest);
  return Promise.all(envelopes.map((envelope) => inlineRollout(read, { content: content.digest, envelope })));
}

function rowOf({ content, envelopes }: IndexedArtifact): RolloutRow {
  const facts = content.fields as Omit<RolloutRow, "rolloutId" | "content" | "envelopes">;
  return { rolloutId: content.id!, content: content.digest, envelopes, ...facts };
}

function matches(row: RolloutRow, { family, group, task, ending }: RolloutQuery): boolean {
  return (
    (family === undefined || row.families.includes(family)) &&
    (group === undefined || row.group === group) &&
    (task === undefined || row.task === task) &&
    (ending === undefined || row.ending === ending || row.ending.startsWith(`${ending}-`))
  );
}

async function signersOf({ store }: OpenBook, index: BookIndex, envelope: Digest): Promise<string[]> {
  const signers = new Set<string>();
  for (const digest of index.attestationsOf(envelope))
    signers.add((await readRecord(store, Attestation, digest)).signer);
  return [...signers].sort();
}
