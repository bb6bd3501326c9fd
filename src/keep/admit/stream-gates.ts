/** Decides if a stream of an admitted rollout is used, and finds its labels. In: the stream, the requirements of the
 *  consumer. Out: its labels, or the reason for its exclusion. */
import type { Digest } from "../../base/index.ts";
import {
  type ExclusionReason,
  type ReadBlob,
  type RolloutContent,
  readColumn,
  refuse,
  type StepStream,
  type Stream,
  type TokenStream,
} from "../../contract/index.ts";
import type { AdmitOptions, AdmitRequest, Admitted } from "./admitted.ts";
import { type LateReward, labelSteps, labelTokens, type StreamLabels } from "./labels.ts";
import { partOf, unitOfStream } from "./split.ts";

export interface StreamAt {
  readonly request: AdmitRequest;
  readonly family: string;
  readonly digest: Digest;
  readonly content: RolloutContent;
  /** State of the selection so far. */
  readonly admitted: Admitted;
}

export function excludedBy(at: StreamAt, stream: Stream, index: number): ExclusionReason | undefined {
  const { digest, content, family } = at;
  const { selection, options } = at.request;
  if (stream.level !== selection.level) return "other-level";
  if (stream.family !== family) {
    if (selection.family !== undefined) return "other-family";
    throw refuse(
      "policy-family-mismatch",
      { artifact: digest, rollout: content.rolloutId, expected: family, actual: stream.family },
      `rollout ${content.rolloutId} (${digest}) has a ${stream.level} stream of family ${stream.family}, the target is a revision of family ${family}. Name a target of ${stream.family} (\`train --policy ${stream.family}\` makes one). To leave such streams out instead, add --family ${family}.`,
    );
  }
  if (options.grouped === true && content.group === undefined) return "no-group";
  if (options.maxLength !== undefined && lengthOf(stream) > options.maxLength) return "too-long";
  const { split, taken } = options;
  if (split !== undefined && partOf(unitOfStream(content, index, split.unit), split) !== split.part)
    return "held-out";
  if (taken?.has(streamKey(digest, index))) return "already-batched";
  return stream.level === "step" ? propensityExcludes(at, stream) : logprobsExclude(at, stream);
}

/** True if a stream is excluded only because it is in another part of the split or in another batch. */
export function isElsewhere(
  { request }: StreamAt,
  stream: Stream,
  reason: ExclusionReason | undefined,
): boolean {
  if (request.options.distinct !== "before-split") return false;
  if (reason !== "held-out" && reason !== "already-batched") return false;
  return stream.level === "token" || propensityOf(stream, request.options.propensity) !== "missing";
}

/** Key for comparing rows of batches with admitted streams. */
export function streamKey(content: Digest, stream: number): string {
  return `${content} ${stream}`;
}

export function lengthOf(stream: Stream): number {
  return stream.level === "token" ? stream.length : stream.steps.length;
}

/** Undefined without labels: unlabelled is not 0. */
export async function labelsOf(
  read: ReadBlob,
  stream: Stream,
  late: readonly LateReward[],
): Promise<StreamLabels | undefined> {
  if (stream.level === "step") return labelSteps(stream, late);
  const { rewards, mask } = stream.columns;
  const columns =
    rewards !== undefined
      ? { rewards: await readColumn(read, rewards, "rewards") }
      : late.length === 0
        ? {}
        : { mask: await readColumn(read, mask, "mask") };
  return labelTokens(stream, columns, late);
}

/** Importance ratios divide by the propensity: of the whole distribution, or of the choice alone. */
function propensityExcludes(
  { request, admitted }: StreamAt,
  stream: StepStream,
): ExclusionReason | undefined {
  const found = propensityOf(stream, request.options.propensity);
  if (found === "choice") admitted.choiceOnly = true;
  return found === "missing" ? "no-propensity" : undefined;
}

function propensityOf(
  { steps }: StepStream,
  wanted: AdmitOptions["propensity"] = "distribution",
): "enough" | "choice" | "missing" {
  if (wanted === "any" || steps.every((step) => step.candidates[step.chosen]!.probability !== null))
    return "enough";
  const logged = steps.every(
    (step) => step.candidates[step.chosen]!.probability !== null || step.propensity !== undefined,
  );
  return wanted === "distribution" || !logged ? "missing" : "choice";
}

/** Requires one kind of log-probabilities for all rows: the requested kind, else that of the first stream. Requires one
 *  tokenizer, if requested. */
function logprobsExclude(at: StreamAt, stream: TokenStream): ExclusionReason | undefined {
  const { selection, options } = at.request;
  if (selection.tokenizer !== undefined && stream.tokenizer !== selection.tokenizer) return "other-tokenizer";
  const wanted = selection.logprobKind;
  if (wanted !== undefined) return stream.logprobKind === wanted ? undefined : "other-logprob-kind";
  if (options.logprobs === "any") return undefined;
  at.admitted.logprobKind ??= stream.logprobKind;
  if (at.admitted.logprobKind === stream.logprobKind) return undefined;
  throw refuse(
    "wrong-logprob-kind",
    { artifact: at.digest, expected: at.admitted.logprobKind, actual: stream.logprobKind },
    `rollout ${at.content.rolloutId} has ${stream.logprobKind} logprobs, others have ${at.admitted.logprobKind}. Select one kind (--logprob-kind); the ledger then lists them.`,
  );
}
