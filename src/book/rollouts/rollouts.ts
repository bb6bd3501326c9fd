/** Queries a book: its rollouts, one rollout with all statements about it, its policy revisions.
 *  In: an open book, filters or a name. Out: rows and records. Writes nothing. */
import type { Digest } from "../../base/index.ts";
import { parseClaimId } from "../../collect/rollout/index.ts";
import {
  Attestation,
  Feedback,
  inlineRollout,
  QuarantineRelease,
  Receipt,
  RolloutContent,
  RolloutEnvelope,
  Task,
  Verdict,
} from "../../contract/index.ts";
import { countedFeedback } from "../../keep/admit/index.ts";
import { readRecord } from "../../store/index.ts";
import {
  type BookIndex,
  type IndexedRecord,
  type IndexedRun,
  type OpenBook,
  resolveArtifact,
  revisionsIn,
} from "../open/index.ts";
import { matchesQuery, type RolloutQuery, type RolloutRow } from "./rollout-row.ts";

export interface RolloutDetails {
  readonly digest: Digest;
  readonly content: RolloutContent;
  readonly envelopes: readonly { digest: Digest; envelope: RolloutEnvelope; signers: readonly string[] }[];
  /** Records about the rollout: receipts, feedback, verdicts, releases; each kind in order of time. */
  readonly about: readonly IndexedRecord[];
}

/** Lists each rollout once, sorted by end time, latest first. */
export async function listRollouts(book: OpenBook, query: RolloutQuery = {}): Promise<RolloutRow[]> {
  const index = await book.index();
  const titleOf = taskTitles(index);
  const { limit = Number.POSITIVE_INFINITY } = query;
  const found = new Map<Digest, Listed>();
  const others = new Set<Digest>();
  const isTriedAgain = laterRuns();
  for (const run of index.runs()) {
    const { digest } = run.content;
    const triedAgain = isTriedAgain(run);
    const known = found.get(digest);
    if (known !== undefined) known.envelopes.push(run.envelope.digest);
    if (known !== undefined || others.has(digest)) continue;
    if (found.size >= limit) break;
    const row = { ...rowOf(run, titleOf), triedAgain };
    if (matchesQuery(row, query)) found.set(digest, row);
    else others.add(digest);
  }
  // With a limit, the loop ends before earlier runs of a rollout are seen.
  if (query.limit !== undefined)
    for (const row of found.values()) row.envelopes = envelopesOf(index, row.content);
  for (const { envelopes } of found.values()) envelopes.sort();
  return [...found.values()];
}

export interface ListedRollout extends RolloutRow {
  /** Feedback for the whole rollout. */
  readonly feedback: readonly { readonly name: string; readonly value: number }[];
}

export async function withFeedback(book: OpenBook, rows: readonly RolloutRow[]): Promise<ListedRollout[]> {
  const given = new Map<Digest, { name: string; value: number }[]>();
  const all = (await book.index())
    .ofKind(Feedback.kind)
    .map(({ digest, fields }) => ({ digest, record: fields as unknown as Feedback }));
  for (const { record } of countedFeedback(all)) {
    const { subject, name, value, call } = record;
    if (call === undefined) given.set(subject, [...(given.get(subject) ?? []), { name, value }]);
  }
  return rows.map((row) => ({ ...row, feedback: given.get(row.content) ?? [] }));
}

/** Lists one record for each policy revision. */
export async function listRevisions(
  book: OpenBook,
  { family, limit }: Pick<RolloutQuery, "family" | "limit"> = {},
): Promise<IndexedRecord[]> {
  const revisions = revisionsIn(await book.index());
  return revisions.filter((each) => family === undefined || each.family === family).slice(0, limit);
}

/** Run that ended last. */
export function lastRun<Run extends { readonly envelope: RolloutEnvelope }>(runs: readonly Run[]): Run {
  return runs.reduce((a, b) => (b.envelope.endedAtMs > a.envelope.endedAtMs ? b : a));
}

/** Reads a rollout by id, digest, or the beginning of one. */
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
    about: [Receipt, Feedback, Verdict, QuarantineRelease].flatMap(({ kind }) =>
      index.about([content.digest], [kind]).sort(byTime),
    ),
  };
}

/** Exports a rollout in the exchange form, which import reads back. Each envelope gives one record, so a rollout that
 *  was run twice gives two. */
export async function exportRollout(
  book: OpenBook,
  name: string,
): Promise<Awaited<ReturnType<typeof inlineRollout>>[]> {
  const { content, envelopes } = resolveArtifact(await book.index(), name);
  const read = (digest: Digest) => book.store.get(digest);
  return Promise.all(envelopes.map((envelope) => inlineRollout(read, { content: content.digest, envelope })));
}

function byTime(a: IndexedRecord, b: IndexedRecord): number {
  return (a.fields.atMs as number) - (b.fields.atMs as number) || (a.digest < b.digest ? -1 : 1);
}

type Listed = Omit<RolloutRow, "envelopes"> & { envelopes: Digest[] };
type OwnRunRow = Omit<Listed, "triedAgain">;
type RunFact = "envelopes" | "triedAgain" | "startedAtMs" | "endedAtMs" | "experiment" | "taskTitle";
type ContentFacts = Omit<RolloutRow, RunFact | "rolloutId" | "content">;

/** Row of the latest run of a content. */
function rowOf({ content, envelope }: IndexedRun, titleOf: (task: string) => string | null): OwnRunRow {
  const facts = content.fields as unknown as ContentFacts;
  const { startedAtMs, endedAtMs, experiment = null } = envelope.fields as unknown as RolloutRow;
  return {
    rolloutId: content.id!,
    content: content.digest,
    envelopes: [envelope.digest],
    startedAtMs,
    endedAtMs,
    experiment,
    taskTitle: titleOf(facts.task),
    ...facts,
  };
}

/** Runs come latest first. For a rollout that was claimed twice, the later claim is therefore seen before the earlier
 *  one. */
function laterRuns(): (run: IndexedRun) => boolean {
  const last = new Map<string, number>();
  return ({ envelope }) => {
    const claim = parseClaimId(envelope.fields.claim as string | undefined);
    if (claim === undefined) return false;
    const later = last.get(claim.item) ?? 0;
    last.set(claim.item, Math.max(claim.token, later));
    return claim.token < later;
  };
}

function envelopesOf(index: BookIndex, content: Digest): Digest[] {
  return index.about([content], [RolloutEnvelope.kind]).map(({ digest }) => digest);
}

/** Looks up each title once, when a row first names the task. */
function taskTitles(index: BookIndex): (task: string) => string | null {
  const titles = new Map<string, string | null>();
  return (task) => {
    const known = titles.get(task);
    if (known !== undefined) return known;
    const [found] = index.digestsOf(Task.kind, [task]);
    const title = found === undefined ? undefined : index.record(found.digest)?.fields.title;
    titles.set(task, (title as string | undefined) ?? null);
    return titles.get(task) ?? null;
  };
}

async function signersOf({ store }: OpenBook, index: BookIndex, envelope: Digest): Promise<string[]> {
  const signers = new Set<string>();
  for (const digest of index.attestationsOf(envelope))
    signers.add((await readRecord(store, Attestation, digest)).signer);
  return [...signers].sort();
}
