/** The one way out of a book: which rollouts may teach or judge, and why the others may not.
 *  In: an open book, a family and a level, freshness, filters. Out: admitted streams with their labels, the sealed manifest
 *  they follow from, and the ledger of the rest. Batches, replay stores, decision rows, evaluation and gate are views of it. */
import type { Digest } from "../base/digest.ts";
import { RollbookError } from "../base/errors.ts";
import { type Id, parseId } from "../base/ids.ts";
import {
  Feedback,
  type Level,
  type Manifest,
  PolicyRevision,
  Receipt,
  Release,
  RolloutEnvelope,
  type Sealed,
  sealManifest,
  Verdict,
} from "../contract/index.ts";
import type { DriftBudgets } from "../contract/ledger.ts";
import { loggedPolicy } from "../contract/policy-revision.ts";
import type { ReadBlob } from "../contract/rollout-exchange.ts";
import { DECISION_LOG } from "../convert/decision-rollouts.ts";
import { FRESHNESS_PROFILES } from "../keep/admit/index.ts";
import { readSealed } from "../keep/admit/read-sources.ts";
import { type AdmitOptions, type Admitted, selectAdmitted } from "../keep/admit/select.ts";
import type { BookIndex, IndexedRecord } from "./find/book-index.ts";
import { type Artifact, everyArtifact, resolveArtifact, resolveRevision } from "./find/resolve.ts";
import type { OpenBook } from "./open-book.ts";

/** Which rollouts are considered at all. What is not considered is not in the ledger. */
export interface RolloutFilter {
  /** Ids or digests (default: all of the book). */
  readonly artifacts?: readonly string[] | undefined;
  readonly exclude?: readonly string[] | undefined;
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
  readonly unlabelled?: AdmitOptions["unlabelled"];
  readonly propensity?: AdmitOptions["propensity"];
}

export interface AdmittedRollouts extends Admitted {
  readonly family: Id;
  readonly level: Level;
  readonly target: Sealed<PolicyRevision> | undefined;
  readonly freshness: FreshnessChoice;
  readonly manifest: Sealed<Manifest>;
  /** Records that the manifest names and an older book lacks. */
  readonly logged: readonly Sealed<PolicyRevision>[];
  /** The book with these records. */
  readonly read: ReadBlob;
}

export async function admittedRollouts(book: OpenBook, request: AdmittedRequest): Promise<AdmittedRollouts> {
  const index = await book.index();
  const { level, feedback } = request;
  if (feedback !== undefined) requireFeedback(index, feedback);
  const target = await targetOf(book, index, request);
  const family = familyOf(index, { ...request, target });
  const artifacts = chooseArtifacts(index, request);
  const { manifest, read, logged } = collectManifest(book, index, { artifacts, family });
  const freshness = request.freshness ?? defaultFreshness(level);
  const admitted = await selectAdmitted({
    read,
    manifest: manifest.record,
    target,
    selection: { level, family },
    options: {
      ...(feedback === undefined ? {} : { feedback: parseId(feedback, "--feedback") }),
      ...(freshness === "none" ? {} : { freshness }),
      requireVerdict: request.requireVerdict ?? false,
      unlabelled: request.unlabelled ?? "exclude",
      propensity: request.propensity ?? "choice",
    },
  });
  return { ...admitted, family, level, target, freshness, manifest, logged, read };
}

/** On-policy consumers live on fresh tokens; off-policy ones divide by the logged probability and take any age. */
export function defaultFreshness(level: Level): FreshnessChoice {
  return level === "token" ? FRESHNESS_PROFILES.default : "none";
}

export interface ManifestOf {
  readonly artifacts: readonly Artifact[];
  /** Whose streams are wanted. */
  readonly family: Id;
  /** Records of revisions (default: all of the book). */
  readonly revisions?: readonly Digest[] | undefined;
}

/** Everything that has been said about these artifacts, by validators, by those who release, by users, and when they were
 *  submitted; and the revisions of the book, or those named. */
export function collectManifest(
  book: OpenBook,
  index: BookIndex,
  { artifacts, family, revisions }: ManifestOf,
): { manifest: Sealed<Manifest>; read: ReadBlob; logged: readonly Sealed<PolicyRevision>[] } {
  const chosen = new Set<unknown>(artifacts.map(({ content }) => content.digest));
  const about = (kind: string) =>
    index
      .ofKind(kind)
      .filter(({ fields }) => chosen.has(fields.subject))
      .map(({ digest }) => digest);
  const recorded = index.ofKind(PolicyRevision.kind);
  const logged = unrecordedLog(recorded, artifacts, family);
  const manifest = sealManifest({
    // A content that was run twice counts once; the smaller envelope stands for both, whatever came first.
    artifacts: artifacts.map(({ content, envelopes }) => ({
      content: content.digest,
      envelope: envelopes[0]!,
    })),
    revisions: [
      ...(revisions ?? recorded.map(({ digest }) => digest)),
      ...logged.map(({ digest }) => digest),
    ],
    verdicts: about(Verdict.kind),
    releases: about(Release.kind),
    feedback: about(Feedback.kind),
    receipts: about(Receipt.kind),
  });
  const beside = new Map([manifest, ...logged].map((sealed) => [sealed.digest, sealed]));
  return { manifest, logged, read: async (digest) => beside.get(digest) ?? book.store.get(digest) };
}

/** The policy behind an imported log. A book into which it was imported by 0.1.0 holds no record of it. */
function unrecordedLog(
  recorded: readonly IndexedRecord[],
  artifacts: readonly Artifact[],
  family: Id,
): Sealed<PolicyRevision>[] {
  const policy = loggedPolicy(family);
  const isLogged = ({ content: { fields } }: Artifact) =>
    fields.environment === DECISION_LOG && (fields.families as string[]).includes(family);
  const isKnown = recorded.some(
    (each) => each.family === family && each.fields.digest === policy.record.digest,
  );
  return !isKnown && artifacts.some(isLogged) ? [policy] : [];
}

export function chooseArtifacts(index: BookIndex, filter: RolloutFilter): Artifact[] {
  const { artifacts, exclude = [], session, dataSource, sinceMs, untilMs } = filter;
  const chosen = artifacts?.map((name) => resolveArtifact(index, name)) ?? everyArtifact(index);
  const left = new Set(exclude.map((name) => resolveArtifact(index, name).content.digest));
  const times = sinceMs === undefined && untilMs === undefined ? undefined : startTimes(index);
  return chosen.filter(({ content, envelopes }) => {
    const { id, fields, digest } = content;
    const startedAtMs = times?.get(envelopes[0]!) ?? 0;
    return (
      !left.has(digest) &&
      (session === undefined || (fields.group ?? id) === session) &&
      (dataSource === undefined || fields.dataSource === dataSource) &&
      (times === undefined || (startedAtMs >= (sinceMs ?? 0) && startedAtMs < (untilMs ?? Infinity)))
    );
  });
}

function startTimes(index: BookIndex): Map<Digest, number> {
  const envelopes = index.ofKind(RolloutEnvelope.kind);
  return new Map(envelopes.map(({ digest, fields }) => [digest, fields.startedAtMs as number]));
}

async function targetOf(
  book: OpenBook,
  index: BookIndex,
  { target, family }: Pick<AdmittedRequest, "target" | "family">,
): Promise<Sealed<PolicyRevision> | undefined> {
  if (target === undefined) return undefined;
  const { digest } = resolveRevision(index, target, family);
  return readSealed((each) => book.store.get(each), PolicyRevision, digest);
}

function familyOf(
  index: BookIndex,
  {
    family,
    target,
    level,
  }: { family?: string | undefined; target?: Sealed<PolicyRevision> | undefined; level: Level },
): Id {
  if (family !== undefined) return parseId(family, "--family");
  if (target !== undefined) return target.record.family;
  const families = familiesAt(index, level);
  if (families.length === 1) return parseId(families[0]!);
  throw new RollbookError(
    families.length === 0 ? "no-rollouts" : "policy-family-mismatch",
    { level, families },
    families.length === 0
      ? `no rollout of the book holds ${level === "step" ? "decisions" : "tokens"}. Record some first.`
      : `the book holds ${level}s of the families ${families.join(", ")}. Choose one with --family.`,
  );
}

/** The families with a stream at this level. A rollout that mixes levels names all its families. */
export function familiesAt(index: BookIndex, level: Level): string[] {
  const families = new Set<string>();
  for (const { fields } of index.ofKind("rollbook.rollout-content.v1"))
    for (const family of familiesOfLevel(fields, level)) families.add(family);
  return [...families].sort();
}

function familiesOfLevel(fields: IndexedRecord["fields"], level: Level): readonly string[] {
  return (fields.levels as string[]).includes(level) ? (fields.families as string[]) : [];
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
