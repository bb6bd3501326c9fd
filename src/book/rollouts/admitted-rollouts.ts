/** Selects the rollouts that training and evaluation may use, with reasons for the others: the only read path for both.
 *  In: an open book, a family and a level, freshness, filters. Out: admitted streams with their labels, the sealed
 *  manifest they follow from, and the ledger of the others. Batches, replay stores, decision rows, evaluation and gate
 *  are views of this result. */
import { type Digest, given, type Id, parseId, RollbookError } from "../../base/index.ts";
import {
  type DriftBudgets,
  Feedback,
  IMPORTED_FAMILY,
  type Level,
  type LogprobKind,
  type Manifest,
  PolicyRevision,
  QuarantineRelease,
  type ReadBlob,
  Receipt,
  RolloutContent,
  RolloutEnvelope,
  type Sealed,
  sealManifest,
  Verdict,
} from "../../contract/index.ts";
import {
  type AdmitOptions,
  type Admitted,
  FRESHNESS_PROFILES,
  selectAdmitted,
} from "../../keep/admit/index.ts";
import { NO_PROPENSITY_REMEDY, UNLABELLED_REMEDY, verdictRemedies } from "../../keep/batch/index.ts";
import { readRecord } from "../../store/index.ts";
import {
  artifactsWith,
  type BookIndex,
  everyArtifact,
  type IndexedArtifact,
  type IndexedRecord,
  type OpenBook,
  requireTrusted,
  resolveArtifact,
} from "../open/index.ts";
import { nothingAt, requireExperiment } from "./no-rollouts.ts";
import { readRevision } from "./read-revision.ts";

/** Filters for the considered rollouts. Rollouts that are not considered are not in the ledger. */
export interface RolloutFilter {
  /** Ids or digests (default: all rollouts of the book). */
  readonly artifacts?: readonly string[] | undefined;
  readonly exclude?: readonly string[] | undefined;
  /** Digests of contents; other contents are not considered. */
  readonly contents?: ReadonlySet<Digest> | undefined;
  /** Name given by `launch --exp`. */
  readonly experiment?: string | undefined;
  /** Group of the rollout, else its id. */
  readonly session?: string | undefined;
  readonly dataSource?: "real" | "synthetic" | undefined;
  /** Start time of the rollout: `sinceMs` inclusive, `untilMs` exclusive. */
  readonly sinceMs?: number | undefined;
  readonly untilMs?: number | undefined;
}

/** `none` accepts any age. A budget needs a target. */
export type FreshnessChoice = "none" | DriftBudgets;

export interface AdmittedRequest extends RolloutFilter {
  readonly level: Level;
  /** Policy family (default: the target's, else the only family of the selected rollouts at this level). */
  readonly family?: string | undefined;
  /** Revision to improve, by id or digest. */
  readonly target?: string | undefined;
  /** Drift budgets (default: for tokens up to 3 accepted and up to 5 quarantined, for steps none). */
  readonly freshness?: FreshnessChoice | undefined;
  /** Name of the late feedback that replaces missing rewards. */
  readonly feedback?: string | undefined;
  readonly requireVerdict?: boolean | undefined;
  readonly logprobKind?: LogprobKind | undefined;
  /** Digest of a tokenizer file; only token streams of this tokenizer are used (default: any). */
  readonly tokenizer?: Digest | undefined;
  readonly unlabelled?: AdmitOptions["unlabelled"];
  readonly propensity?: AdmitOptions["propensity"];
  readonly logprobs?: AdmitOptions["logprobs"];
}

export interface AdmittedRollouts extends Admitted {
  readonly family: Id;
  readonly level: Level;
  readonly target: Sealed<PolicyRevision> | undefined;
  readonly freshness: FreshnessChoice;
  readonly manifest: Sealed<Manifest>;
  readonly read: ReadBlob;
}

export async function admittedRollouts(book: OpenBook, request: AdmittedRequest): Promise<AdmittedRollouts> {
  const index = await book.index();
  const { level, feedback } = request;
  if (feedback !== undefined) requireFeedback(index, feedback);
  const target =
    request.target === undefined ? undefined : await readRevision(book, request.target, request.family);
  const chosen = chooseArtifacts(index, request);
  const family = await familyOf(book, index, { ...request, target, chosen });
  const manifest = collectManifest(index, chosen);
  await requireTrustedManifest(book, index, manifest.record);
  const read: ReadBlob = (digest) => book.store.get(digest);
  const freshness = request.freshness ?? defaultFreshness(level);
  const admitted = await selectAdmitted({
    read,
    manifest: manifest.record,
    target,
    selection: {
      level,
      family,
      ...given({ logprobKind: request.logprobKind, tokenizer: request.tokenizer }),
    },
    options: {
      ...(feedback === undefined ? {} : { feedback: parseId(feedback, "--feedback") }),
      ...(freshness === "none" ? {} : { freshness }),
      requireVerdict: request.requireVerdict ?? false,
      ...{ unrecorded: "name", distinct: "before-split" },
      unlabelled: request.unlabelled ?? "exclude",
      propensity: request.propensity ?? "choice",
      logprobs: request.logprobs ?? "one",
    },
  });
  return { ...admitted, family, level, target, freshness, manifest, read };
}

/** Throws if no row is admitted; the ledger gives the reasons. `without` is advice for decisions without a logged
 *  probability. */
export function requireAdmitted(
  { rows, ledger, family, level }: AdmittedRollouts,
  { without }: { readonly without?: string } = {},
): void {
  if (rows.length > 0) return;
  const { artifacts } = ledger.considered;
  const reasons = new Set(ledger.reasons().map(({ reason }) => reason));
  const remedies = [
    ...(reasons.has("no-propensity")
      ? [NO_PROPENSITY_REMEDY, ...(without === undefined ? [] : [without])]
      : []),
    ...(reasons.has("unlabelled") ? [UNLABELLED_REMEDY] : []),
    ...verdictRemedies(ledger, { level, propensity: "choice" }),
  ];
  throw new RollbookError(
    "empty-split",
    { considered: artifacts, family, reasons: ledger.reasons() },
    `none of ${artifacts} rollouts has ${level === "step" ? "decisions" : "tokens"} that may be used. ${[ledger.summary(), ...remedies].join(" ")}`,
  );
}

/** On-policy training needs fresh tokens. Off-policy training divides by the logged probability and accepts any age. */
export function defaultFreshness(level: Level): FreshnessChoice {
  return level === "token" ? FRESHNESS_PROFILES.default : "none";
}

/** Collects all statements about these artifacts: verdicts, releases, feedback and submission receipts. Adds the
 *  revisions of the book, or the given ones. */
export function collectManifest(
  index: BookIndex,
  artifacts: readonly IndexedArtifact[],
  {
    revisions = index.ofKind(PolicyRevision.kind).map(({ digest }) => digest),
    feedback,
  }: {
    readonly revisions?: readonly Digest[] | undefined;
    /** Accepts late feedback by its name (default: all of it). */
    readonly feedback?: ((name: unknown) => boolean) | undefined;
  } = {},
): Sealed<Manifest> {
  const contents = artifacts.map(({ content }) => content.digest);
  const said = saidOf(index, contents);
  const about = (kind: string, wanted: (name: unknown) => boolean = () => true) =>
    said.filter((each) => each.kind === kind && wanted(each.fields.name)).map(({ digest }) => digest);
  return sealManifest({
    // A content that was run twice counts once. The smaller envelope stands for both, regardless of their order.
    artifacts: artifacts.map(({ content, envelopes }) => ({
      content: content.digest,
      envelope: envelopes[0]!,
    })),
    revisions,
    verdicts: about(Verdict.kind),
    releases: about(QuarantineRelease.kind),
    feedback: about(Feedback.kind, feedback),
    receipts: about(Receipt.kind),
  });
}

/** Kinds of record that a manifest lists beside the artifacts and their revisions. */
const SAID = [Verdict, QuarantineRelease, Feedback, Receipt].map(({ kind }) => kind);

function saidOf(index: BookIndex, contents: readonly Digest[]): IndexedRecord[] {
  if (contents.length <= FEW) return index.about(contents, SAID);
  const chosen = new Set<unknown>(contents);
  return SAID.flatMap((kind) => index.ofKind(kind)).filter(({ fields }) => chosen.has(fields.subject));
}

/** Requires trust for all records of a manifest that decide what may be used for training or evaluation. */
export async function requireTrustedManifest(
  book: OpenBook,
  index: BookIndex,
  manifest: Manifest,
): Promise<void> {
  const { artifacts, revisions, verdicts, releases, feedback, receipts = [] } = manifest;
  const named = (kind: string, digests: readonly Digest[]) => digests.map((digest) => ({ kind, digest }));
  const envelopes = artifacts.map(({ envelope }) => envelope);
  await requireTrusted(book, index, [
    ...named(RolloutEnvelope.kind, envelopes),
    ...named(PolicyRevision.kind, revisions),
    ...named(Verdict.kind, verdicts),
    ...named(QuarantineRelease.kind, releases),
    ...named(Feedback.kind, feedback),
    ...named(Receipt.kind, receipts),
  ]);
}

/** Up to this number, contents are looked up by digest; for more, reading the whole book is faster. */
const FEW = 10_000;

export function chooseArtifacts(index: BookIndex, filter: RolloutFilter): IndexedArtifact[] {
  const { artifacts, exclude = [], contents, session, dataSource, sinceMs, untilMs, experiment } = filter;
  const ofExperiment = experiment === undefined ? undefined : envelopesOf(index, experiment);
  const chosen =
    artifacts?.map((name) => resolveArtifact(index, name)) ??
    (contents !== undefined && contents.size <= FEW ? artifactsWith(index, contents) : everyArtifact(index));
  const left = new Set(exclude.map((name) => resolveArtifact(index, name).content.digest));
  const times = sinceMs === undefined && untilMs === undefined ? undefined : startTimes(index);
  return chosen.filter(({ content, envelopes }) => {
    const { id, fields, digest } = content;
    const startedAtMs = times?.get(envelopes[0]!) ?? 0;
    return (
      !left.has(digest) &&
      (contents === undefined || contents.has(digest)) &&
      (ofExperiment === undefined || envelopes.some((each) => ofExperiment.has(each))) &&
      (session === undefined || (fields.group ?? id) === session) &&
      (dataSource === undefined || fields.dataSource === dataSource) &&
      (times === undefined || (startedAtMs >= (sinceMs ?? 0) && startedAtMs < (untilMs ?? Infinity)))
    );
  });
}

function envelopesOf(index: BookIndex, experiment: string): ReadonlySet<Digest> {
  const all = index.ofKind(RolloutEnvelope.kind);
  requireExperiment(index, experiment);
  const own = all.filter(({ fields }) => fields.experiment === experiment);
  return new Set(own.map(({ digest }) => digest));
}

function startTimes(index: BookIndex): Map<Digest, number> {
  const envelopes = index.ofKind(RolloutEnvelope.kind);
  return new Map(envelopes.map(({ digest, fields }) => [digest, fields.startedAtMs as number]));
}

async function familyOf(
  book: OpenBook,
  index: BookIndex,
  {
    family,
    target,
    level,
    chosen,
  }: Pick<AdmittedRequest, "family" | "level"> & {
    target: Sealed<PolicyRevision> | undefined;
    chosen: readonly IndexedArtifact[];
  },
): Promise<Id> {
  if (family !== undefined) return requireFamily(index, parseId(family, "--family"));
  if (target !== undefined) return target.record.family;
  const contents = chosen.map(({ content }) => content);
  const within = await familiesAt(book, index, level, contents);
  const recorded = within.length > 0 ? within : await familiesAt(book, index, level);
  if (recorded.length === 0) throw nothingAt(level);
  // Filters that select nothing are the caller's error to report, not the families.
  if (within.length === 0) return recorded[0]!;
  const chose = recorded.length === 1 ? recorded : await withChoice(book, level, contents);
  const families = chose.length === 0 ? recorded : chose;
  if (families.length === 1) return families[0]!;
  throw new RollbookError(
    "policy-family-mismatch",
    { level, families },
    `the book holds ${level}s of the families ${families.join(", ")}. Choose one with --family.${await togetherRemedy(book, families, contents)}`,
  );
}

/** An imported log has its own family by default, and decisions served beside it have another. This remedy names the
 *  way to join them. Rows without a propensity would be left out of both, so no advice is given for them. */
async function togetherRemedy(
  book: OpenBook,
  families: readonly Id[],
  contents: readonly IndexedRecord[],
): Promise<string> {
  const [other] = families.filter((family) => family !== IMPORTED_FAMILY);
  if (other === undefined || families.length !== 2 || !families.includes(IMPORTED_FAMILY)) return "";
  if (!(await hasPropensity(book, contents))) return "";
  return ` To use both together, import the log again with \`data import … --family ${other} --again\`, then choose --family ${other}.`;
}

/** True if the first imported rollout logs the probability of its choice. The rows of a log are alike. */
async function hasPropensity(book: OpenBook, contents: readonly IndexedRecord[]): Promise<boolean> {
  const imported = contents.find(({ fields }) => (fields.families as Id[]).includes(IMPORTED_FAMILY));
  if (imported === undefined) return false;
  const { streams } = await readRecord(book.store, RolloutContent, imported.digest);
  return streams.some(
    (stream) =>
      stream.level === "step" &&
      stream.steps.every(
        ({ candidates, chosen, propensity }) => (propensity ?? candidates[chosen]!.probability) != null,
      ),
  );
}

function requireFamily(index: BookIndex, family: Id): Id {
  const known = new Set(
    index.ofKind(RolloutContent.kind).flatMap(({ fields }) => fields.families as string[]),
  );
  if (known.size === 0 || known.has(family)) return family;
  const families = [...known].sort();
  throw new RollbookError(
    "not-found",
    { what: "family", family, families },
    `the book has no rollouts of family ${family}. It has ${families.slice(0, 20).join(", ")}.`,
  );
}

/** Families with a stream at this level. The index stores families and levels separately, so a content with both levels
 *  is read. */
export async function familiesAt(
  book: OpenBook,
  index: BookIndex,
  level: Level,
  contents: readonly IndexedRecord[] = index.ofKind(RolloutContent.kind),
): Promise<Id[]> {
  const families = new Set<Id>();
  for (const { digest, fields } of contents) {
    const [levels, named] = [fields.levels as string[], fields.families as Id[]];
    if (!levels.includes(level) || named.every((family) => families.has(family))) continue;
    if (levels.length === 1) for (const family of named) families.add(family);
    else
      for (const stream of (await readRecord(book.store, RolloutContent, digest)).streams)
        if (stream.level === level) families.add(stream.family);
  }
  return [...families].sort();
}

/** Families with a stream that has a choice. An agent that ran unchanged, or named its model, has one candidate at each
 *  step. */
async function withChoice(book: OpenBook, level: Level, contents: readonly IndexedRecord[]): Promise<Id[]> {
  const families = new Set<Id>();
  for (const { digest, fields } of contents) {
    const [levels, named] = [fields.levels as string[], fields.families as Id[]];
    if (!levels.includes(level) || named.every((family) => families.has(family))) continue;
    for (const stream of (await readRecord(book.store, RolloutContent, digest)).streams)
      if (stream.level === level && hasChoice(stream)) families.add(stream.family);
  }
  return [...families].sort();
}

function hasChoice(stream: RolloutContent["streams"][number]): boolean {
  return stream.level === "token" || stream.steps.some(({ candidates }) => candidates.length > 1);
}

/** Refuses an unknown name: a misspelt one would leave all rollouts unlabelled without a warning. */
export function requireFeedback(index: BookIndex, name: string): void {
  const names = [...new Set(index.ofKind(Feedback.kind).map(({ fields }) => String(fields.name)))].sort();
  if (names.includes(name)) return;
  const known = names.length === 0 ? "no feedback at all" : names.slice(0, 20).join(", ");
  throw new RollbookError(
    "not-found",
    { what: "feedback", name, known: names },
    `there is no feedback ${JSON.stringify(name)} in the book. It has ${known}.`,
  );
}
