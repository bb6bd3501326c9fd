/** Cuts a trainer batch from a book: collects the manifest, assembles, writes, signs.
 *  In: an open book, a target, filters. Out: the sealed batch. A refused batch leaves no record behind. */
import {
  type Digest,
  given,
  type Id,
  isDigest,
  isRollbookError,
  parseId,
  RollbookError,
} from "../../base/index.ts";
import {
  type AdvantageMethod,
  type BatchOptions,
  type Level,
  type LogprobKind,
  type PolicyRevision,
  type Sealed,
  type SealedBlob,
  TrainerBatch,
} from "../../contract/index.ts";
import type { FreshnessBudgets } from "../../keep/admit/index.ts";
import { assembleBatch } from "../../keep/batch/index.ts";
import { type ReadRecord, signedAmong } from "../../store/index.ts";
import {
  type BookIndex,
  type IndexedArtifact,
  type OpenBook,
  resolveRevision,
  revisionsIn,
} from "../open/index.ts";
import {
  admitRollouts,
  chooseArtifacts,
  collectManifest,
  defaultFreshness,
  type FreshnessChoice,
  familiesAt,
  type RolloutFilter,
  requireFeedback,
  requireTrustedManifest,
} from "../rollouts/index.ts";

export interface CutRequest extends RolloutFilter {
  /** Revision that the batch is meant to improve, by id or digest. */
  readonly target: string;
  readonly level: Level;
  /** Policy family (default: the target's); a mix of families is refused. */
  readonly family?: string | undefined;
  readonly advantage?: AdvantageMethod | undefined;
  readonly feedback?: string | undefined;
  readonly requireVerdict?: boolean | undefined;
  readonly maxLength?: number | undefined;
  /** Kind of token log-probabilities (default: all must be of one kind). */
  readonly logprobKind?: LogprobKind | undefined;
  /** Digest of a tokenizer file; only token streams of this tokenizer are used (default: any). */
  readonly tokenizer?: Digest | undefined;
  /** `distribution`: only steps that log the probabilities of all candidates. `choice`: also steps that log only that
   *  of the choice. The default is `distribution`, or `choice` if no step has a distribution. */
  readonly propensity?: "distribution" | "choice" | undefined;
  /** Drift budgets (default: for tokens up to 3 accepted and up to 5 quarantined, for steps none). */
  readonly freshness?: FreshnessChoice | undefined;
  /** Budgets, including ages, by which the artifacts are judged first. The verdicts are sealed, and the batch obeys
   *  them. */
  readonly judge?: FreshnessBudgets | undefined;
  readonly seed?: bigint | undefined;
  /** Reads the records of rollouts (default: from the book). A caller that holds opened records passes its own
   *  reader. */
  readonly readRecord?: ReadRecord | undefined;
  readonly onProgress?: ((done: number, total: number) => void) | undefined;
}

export async function cutBatch(book: OpenBook, request: CutRequest): Promise<Sealed<TrainerBatch>> {
  if (request.judge !== undefined) await admitRollouts(book, { ...request, budgets: request.judge });
  const index = await book.index();
  const { target, family, level, feedback } = request;
  if (feedback !== undefined) requireFeedback(index, feedback);
  const freshness = request.freshness ?? (request.judge === undefined ? defaultFreshness(level) : "none");
  const cut = (propensity: Pick<BatchOptions, "propensity">) =>
    cutFrom(book, {
      index,
      artifacts: chooseArtifacts(index, request),
      target: resolveRevision(index, target, family, ", or give its family with --family").digest,
      selection: {
        level,
        family: family === undefined ? undefined : parseId(family, "--family"),
        ...given({ logprobKind: request.logprobKind, tokenizer: request.tokenizer }),
      },
      options: {
        ...given({ advantage: request.advantage, maxLength: request.maxLength }),
        ...(feedback === undefined ? {} : { feedback: parseId(feedback, "--feedback") }),
        ...(freshness === "none" ? {} : { freshness }),
        ...{ requireVerdict: request.requireVerdict ?? false, distinct: "before-split" as const },
        ...propensity,
      },
      seed: request.seed ?? 0n,
      judged: request.judge !== undefined,
      readRecord: request.readRecord,
      onProgress: request.onProgress,
    });
  try {
    return await cut(request.propensity === "choice" ? { propensity: "choice" } : {}).catch((error) => {
      // A trainer only divides by the probability of the choice, and foreign logs seldom have the others. If some rows
      // have all probabilities, the batch holds only those: the same command gives the same batch as before.
      if (level !== "step" || request.propensity !== undefined || !isRollbookError(error, "empty-batch"))
        throw error;
      return cut({ propensity: "choice" });
    });
  } catch (error) {
    throw withDamaged(index, await withTargets(book, { index, error, request }));
  }
}

/** Adds the damaged rollouts to the error, and the option that excludes them. */
function withDamaged(index: BookIndex, error: unknown): unknown {
  if (!isRollbookError(error, "digest-mismatch") || !isDigest(error.fields.expected)) return error;
  const rollouts = index.rolloutsWith(error.fields.expected);
  if (rollouts.length === 0) return error;
  return new RollbookError(
    error.code,
    { ...error.fields, rollouts },
    `${error.message} To leave the damaged rollout out, add --exclude ${rollouts.join(" ")}.`,
    { cause: error },
  );
}

/** Adds the book's targets of other families to a refusal because of a policy family. */
async function withTargets(
  book: OpenBook,
  { index, error, request }: { index: BookIndex; error: unknown; request: CutRequest },
): Promise<unknown> {
  const isMixed = isRollbookError(error, "policy-family-mismatch") && error.fields.rollout !== undefined;
  const isEmpty =
    isRollbookError(error, "empty-batch") && (error.fields.reasons as string[])[0] === "other-family";
  if (!isMixed && !isEmpty) return error;
  const own = (isMixed ? error.fields.expected : error.fields.family) as Id;
  const { level } = request;
  const chosen = chooseArtifacts(index, request).map(({ content }) => content);
  const recorded = await familiesAt(book, index, level, chosen);
  const others = recorded.filter((family) => family !== own);
  const targets = others.map((family) => `${targetsOf(index, family)} (family ${family})`);
  const rest = recorded.includes(own)
    ? `To leave ${level}s of other families out, add --family ${own}.`
    : `These rollouts have no ${level}s of ${own}.`;
  const what = isMixed
    ? `rollout ${error.fields.rollout} has ${level}s of family ${error.fields.actual}, the target is a revision of family ${own}.`
    : error.message;
  return new RollbookError(
    error.code,
    error.fields,
    `${what} ${rest} Targets of other families: ${targets.join("; ")}.`,
    { cause: error },
  );
}

/** Maximum number of revisions that a message lists. */
const MOST_TARGETS = 5;

function targetsOf(index: BookIndex, family: Id): string {
  const ids = [...new Set(revisionsIn(index).flatMap((each) => (each.family === family ? [each.id!] : [])))];
  if (ids.length === 0) return `none (\`train --policy ${family}\` makes one)`;
  const shown = ids.slice(-MOST_TARGETS).join(", ");
  return ids.length > MOST_TARGETS ? `${shown} and ${ids.length - MOST_TARGETS} more` : shown;
}

interface CutFrom {
  readonly index: BookIndex;
  readonly artifacts: readonly IndexedArtifact[];
  /** Digest of the target's record. */
  readonly target: Digest;
  readonly selection: Parameters<typeof assembleBatch>[0]["selection"];
  readonly options: Partial<BatchOptions>;
  readonly seed: bigint;
  /** Revisions of the manifest (default: all of the book). Revisions known only by name enter the book with the
   *  batch. */
  readonly revisions?: readonly Sealed<PolicyRevision>[] | undefined;
  /** Selects late feedback of the manifest by name (default: all of it). */
  readonly feedback?: ((name: unknown) => boolean) | undefined;
  /** The command that cuts the batch has sealed verdicts for it. */
  readonly judged?: boolean;
  readonly readRecord?: CutRequest["readRecord"];
  readonly onProgress?: ((done: number, total: number) => void) | undefined;
}

export async function cutFrom(book: OpenBook, request: CutFrom): Promise<Sealed<TrainerBatch>> {
  const { store, signer } = book;
  const { index, artifacts, revisions, feedback, onProgress, ...rest } = request;
  const manifest = collectManifest(index, artifacts, {
    revisions: revisions?.map(({ digest }) => digest),
    feedback,
  });
  // Revisions known only by name enter the book with the batch, and are signed with it.
  const known = manifest.record.revisions.filter(
    (digest) => !revisions?.some((each) => each.digest === digest && each.bytes.length > 0),
  );
  await requireTrustedManifest(book, index, { ...manifest.record, revisions: known });
  const beside = new Map<Digest, SealedBlob>(
    [manifest, ...(revisions ?? [])].map((each) => [each.digest, each]),
  );
  const entering = [...beside.values()].filter(({ bytes }) => bytes.length > 0);
  const batch = await assembleBatch({
    ...rest,
    read(digest) {
      const own = beside.get(digest);
      return own === undefined || own.bytes.length === 0 ? store.get(digest) : Promise.resolve(own);
    },
    write(blob) {
      // No other record refers to the manifest, so it enters the book only together with its batch.
      if (blob.kind === TrainerBatch.kind) for (const { kind, bytes } of entering) store.put(kind, bytes);
      store.put(blob.kind, blob.bytes);
    },
    manifest: manifest.digest,
    ...given({ onProgress }),
  });
  const attestation = signer?.attest([...signedAmong(entering), batch.digest]);
  if (attestation !== undefined) store.put(attestation.kind, attestation.bytes);
  await store.flush();
  return batch;
}
