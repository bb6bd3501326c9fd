/** Cuts the batch that a policy learns from: admitted decisions of the train split, sealed and read back.
 *  In: an open book, filters of decisions, a split. Out: the batch and its rows. Excludes rows that are already
 *  counted. */
import type { Digest } from "../../base/index.ts";
import type { PolicyRevision, Sealed, TrainerBatch } from "../../contract/index.ts";
import { type AdmittedStream, unitOfStream } from "../../keep/admit/index.ts";
import { type LoggedRow, partOf, type SplitRule } from "../../learn/index.ts";
import { cutFrom } from "../batches/index.ts";
import { type DecisionRequest, emptyPart, requireSelected, rowsOfBatch } from "../decisions/index.ts";
import type { OpenBook } from "../open/index.ts";
import { type AdmittedRollouts, chooseArtifacts, readRevision, requireAdmitted } from "../rollouts/index.ts";

interface TrainingSplit {
  readonly train: readonly AdmittedStream[];
  /** Decisions of the other parts of the split. */
  readonly heldBack: number;
}

export function splitAdmitted({ rows }: AdmittedRollouts, rule: SplitRule): TrainingSplit {
  const train = rows.filter((row) => partOf(unitOfStream(row, row.stream, rule.unit), rule) === "train");
  const decisions = (of: readonly AdmittedStream[]) => of.reduce((sum, { samples }) => sum + samples, 0);
  return { train, heldBack: decisions(rows) - decisions(train) };
}

/** Number of rollouts in each part of the split. */
export function countParts(
  { rows }: AdmittedRollouts,
  rule: SplitRule,
): Record<ReturnType<typeof partOf>, number> {
  const parts = { train: new Set<Digest>(), calibration: new Set<Digest>(), judge: new Set<Digest>() };
  for (const row of rows) parts[partOf(unitOfStream(row, row.stream, rule.unit), rule)].add(row.content);
  return { train: parts.train.size, calibration: parts.calibration.size, judge: parts.judge.size };
}

const withoutPropensity = (family: string) =>
  `from a file, all learners but csc also train without it: \`rollbook data export --family ${family} --out FILE\`, then \`rollbook train auto --data FILE\`.`;

/** Throws if the training set is empty; the error lists the exclusions. */
export function requireTraining(
  admitted: AdmittedRollouts,
  { train }: TrainingSplit,
  { rule, request }: { readonly rule: SplitRule; readonly request: DecisionRequest },
): void {
  const { rows } = admitted;
  requireSelected([admitted], request);
  requireAdmitted(admitted, { without: withoutPropensity(admitted.family) });
  if (train.length > 0) return;
  const units = new Set(rows.map((row) => unitOfStream(row, row.stream, rule.unit))).size;
  throw emptyPart("train", { rows: rows.length, units, unit: rule.unit });
}

interface TrainingBatchRequest {
  readonly request: DecisionRequest;
  readonly admitted: AdmittedRollouts;
  readonly rule: SplitRule;
  /** Batches whose rows must not be learned from again. */
  readonly except?: readonly Digest[];
  /** Parent of the new revision, by id or digest, if it is in the book. */
  readonly parent?: string | undefined;
}

/** The manifest lists only the revisions behind the rows, so that later revisions of the book do not change the
 *  batch. */
export async function cutTrainingBatch(
  book: OpenBook,
  { request, admitted, rule, except = [], parent }: TrainingBatchRequest,
): Promise<Sealed<TrainerBatch>> {
  const index = await book.index();
  const { family, level, sources } = admitted;
  const target = (await parentIn(book, parent, family)) ?? newestOf(sources);
  const artifacts = chooseArtifacts(index, request);
  const { unit, salt, shares } = rule;
  return cutFrom(book, {
    ...{ index, artifacts, seed: 0n, target: target.digest },
    selection: { level, family },
    options: {
      advantage: "none",
      propensity: "choice",
      distinct: "before-split",
      requireVerdict: request.requireVerdict ?? false,
      ...(request.feedback === undefined ? {} : { feedback: request.feedback as never }),
      ...(except.length === 0 ? {} : { except: [...except] }),
      split: { unit, salt, shares: [...shares] as [number, number, number], part: "train" },
    },
    // Only the feedback that is read may change the batch.
    feedback: (name) => name === request.feedback,
    revisions: sources.some(({ digest }) => digest === target.digest) ? sources : [target, ...sources],
  });
}

export async function readTraining(book: OpenBook, batches: readonly Digest[]): Promise<LoggedRow[]> {
  const rows: LoggedRow[] = [];
  for (const batch of batches)
    for await (const row of rowsOfBatch((digest) => book.store.get(digest), batch)) rows.push(row);
  return rows;
}

/** A parent of another family counts as parent of the new revision, but it made none of these decisions. */
async function parentIn(
  book: OpenBook,
  parent: string | undefined,
  family: string,
): Promise<Sealed<PolicyRevision> | undefined> {
  const index = await book.index();
  if (parent === undefined || index.named(parent).every((record) => record.family !== family))
    return undefined;
  return readRevision(book, parent, family);
}

/** Newest of the revisions that decided. */
function newestOf(sources: readonly Sealed<PolicyRevision>[]): Sealed<PolicyRevision> {
  const number = ({ record }: Sealed<PolicyRevision>) => Number(record.number ?? -1n);
  return [...sources].sort(
    (a, b) =>
      number(b) - number(a) ||
      b.record.producedAtMs - a.record.producedAtMs ||
      (a.record.id < b.record.id ? -1 : 1),
  )[0]!;
}
