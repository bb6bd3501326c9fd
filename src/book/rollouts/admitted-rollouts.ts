/** The one way out of a book: which rollouts may teach or judge, and why the others may not.
 *  In: an open book, a family and a level, freshness, filters. Out: admitted streams with their labels, the sealed manifest
 *  they follow from, and the ledger of the rest. Batches, replay stores, decision rows, evaluation and gate are views of it. */
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
import { NO_PROPENSITY_REMEDY, UNLABELLED_REMEDY } from "../../keep/batch/index.ts";
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

/** Which rollouts are considered at all. What is not considered is not in the ledger. */
export interface RolloutFilter {
  /** Ids or digests (default: all of the book). */
  readonly artifacts?: readonly string[] | undefined;
  readonly exclude?: readonly string[] | undefined;
  /** Contents by digest; others are not considered. */
  readonly contents?: ReadonlySet<Digest> | undefined;
  /** As `launch --exp` named it. */
  readonly experiment?: string | undefined;
  /** A rollout's group, else its id. */
  readonly session?: string | undefined;
  readonly dataSource?: "real" | "synthetic" | undefined;
  /** When the rollout began: from inclusive, to exclusive. */
  readonly sinceMs?: number | undefined;
  readonly untilMs?: number | undefined;
}

/** `none`: whatever its age. A budget needs a target. */
export type FreshnessChoice = "none" | DriftBudgets;

export interface AdmittedRequest extends RolloutFilter {
  readonly level: Level;
  /** Default: the target's, else the only family of the book at this level. */
  readonly family?: string | undefined;
  /** The revision to improve, by id or digest. */
  readonly target?: string | undefined;
  /** Default: a drift of 3 accepted and 5 quarantined for tokens, none for steps. */
  readonly freshness?: FreshnessChoice | undefined;
  /** The name of late feedback that stands for missing rewards. */
  readonly feedback?: string | undefined;
  readonly requireVerdict?: boolean | undefined;
  readonly logprobKind?: LogprobKind | undefined;
  /** Token streams of this tokenizer alone, by the digest of its file (default: any). */
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
  const family = await familyOf(book, index, { ...request, target });
  const manifest = collectManifest(index, chooseArtifacts(index, request));
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

/** Where nothing is admitted, the ledger says why. `without`: what works with decisions that log no probability. */
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
  ];
  throw new RollbookError(
    "empty-split",
    { considered: artifacts, family, reasons: ledger.reasons() },
    `none of ${artifacts} rollouts has ${level === "step" ? "decisions" : "tokens"} that may be used. ${[ledger.summary(), ...remedies].join(" ")}`,
  );
}

/** On-policy consumers live on fresh tokens; off-policy ones divide by the logged probability and take any age. */
export function defaultFreshness(level: Level): FreshnessChoice {
  return level === "token" ? FRESHNESS_PROFILES.default : "none";
}

/** Everything that has been said about these artifacts, by validators, by those who release, by users, and when they were
 *  submitted; and the revisions of the book, or those named. */
export function collectManifest(
  index: BookIndex,
  artifacts: readonly IndexedArtifact[],
  {
    revisions = index.ofKind(PolicyRevision.kind).map(({ digest }) => digest),
    feedback,
  }: {
    readonly revisions?: readonly Digest[] | undefined;
    /** Only late feedback that this lets in. */
    readonly feedback?: ((name: unknown) => boolean) | undefined;
  } = {},
): Sealed<Manifest> {
  const contents = artifacts.map(({ content }) => content.digest);
  const said = saidOf(index, contents);
  const about = (kind: string, wanted: (name: unknown) => boolean = () => true) =>
    said.filter((each) => each.kind === kind && wanted(each.fields.name)).map(({ digest }) => digest);
  return sealManifest({
    // A content that was run twice counts once; the smaller envelope stands for both, whatever came first.
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

/** What a manifest lists beside the artifacts and their revisions. */
const SAID = [Verdict, QuarantineRelease, Feedback, Receipt].map(({ kind }) => kind);

function saidOf(index: BookIndex, contents: readonly Digest[]): IndexedRecord[] {
  if (contents.length <= FEW) return index.about(contents, SAID);
  const chosen = new Set<unknown>(contents);
  return SAID.flatMap((kind) => index.ofKind(kind)).filter(({ fields }) => chosen.has(fields.subject));
}

/** Everything that a manifest lists and that decides what may teach or judge. */
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

/** So many are looked up by their digests; for more, reading all of the book is faster. */
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
  }: Pick<AdmittedRequest, "family" | "level"> & { target: Sealed<PolicyRevision> | undefined },
): Promise<Id> {
  if (family !== undefined) return requireFamily(index, parseId(family, "--family"));
  if (target !== undefined) return target.record.family;
  const recorded = await familiesAt(book, index, level);
  if (recorded.length === 0) throw nothingAt(level);
  const chose = recorded.length === 1 ? recorded : await withChoice(book, index, level);
  const families = chose.length === 0 ? recorded : chose;
  if (families.length === 1) return families[0]!;
  throw new RollbookError(
    "policy-family-mismatch",
    { level, families },
    `the book holds ${level}s of the families ${families.join(", ")}. Choose one with --family.${togetherRemedy(families)}`,
  );
}

/** A log is imported under a family of its own unless told, and what was served beside it has another. */
function togetherRemedy(families: readonly Id[]): string {
  const [other] = families.filter((family) => family !== IMPORTED_FAMILY);
  if (other === undefined || families.length !== 2 || !families.includes(IMPORTED_FAMILY)) return "";
  return ` To use both together, import the log again with \`data import … --family ${other} --again\`, then choose --family ${other}.`;
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

/** The families with a stream at this level. The index knows families and levels apart: what mixes levels is read. */
export async function familiesAt(book: OpenBook, index: BookIndex, level: Level): Promise<Id[]> {
  const families = new Set<Id>();
  for (const { digest, fields } of index.ofKind(RolloutContent.kind)) {
    const [levels, named] = [fields.levels as string[], fields.families as Id[]];
    if (!levels.includes(level) || named.every((family) => families.has(family))) continue;
    if (levels.length === 1) for (const family of named) families.add(family);
    else
      for (const stream of (await readRecord(book.store, RolloutContent, digest)).streams)
        if (stream.level === level) families.add(stream.family);
  }
  return [...families].sort();
}

/** The families of which a stream teaches: an agent that ran as it is, or named its model, has one candidate at each step. */
async function withChoice(book: OpenBook, index: BookIndex, level: Level): Promise<Id[]> {
  const families = new Set<Id>();
  for (const { digest, fields } of index.ofKind(RolloutContent.kind)) {
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

/** A misspelt name would leave everything unlabelled, and say nothing. */
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
