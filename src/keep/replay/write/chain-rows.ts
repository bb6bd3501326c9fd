/** Turns a sealed rollout into rows: one chain per stream, its lineage, its steps and candidates, or its tokens.
 *  In: content, task, columns, as sealed. Out: rows in a segment. Copies the record and derives only values that follow
 *  from it (gains, cumulative values, masks); a missing value stays missing. */
import { type Digest, digestJson, digestToBytes, RollbookError } from "../../../base/index.ts";
import {
  type Candidate,
  type Ending,
  outsideBaseline,
  parentOf,
  type RolloutContent,
  type Step,
  type StepStream,
  type Stream,
  type Task,
  type TokenColumns,
  type TokenStream,
} from "../../../contract/index.ts";
import { HASHED_LINEAGE, rootGain } from "../tables/index.ts";
import type { SegmentWriter } from "./segment-writer.ts";
import type { RowOf } from "./table-writer.ts";

export interface SealedChain {
  readonly digest: Digest;
  readonly content: RolloutContent;
  /** Task record, if the rollout names one. */
  readonly task: Task | undefined;
  readonly streamIndex: number;
  /** Columns of a token stream. */
  readonly columns: TokenColumns | undefined;
  /** Name of the late feedback that gave the rewards, if the record had none. */
  readonly feedback?: string;
}

export async function addChain(segment: SegmentWriter, chain: SealedChain): Promise<void> {
  const stream = chain.content.streams[chain.streamIndex]!;
  const target = segment.target({
    config: chain.content.configs?.target,
    reward: rewardDigest(chain),
    invalidReason: outsideBaseline(chain.content.ending),
  });
  const row = segment.tables.chains.rows;
  const first = stream.level === "step" ? stream.steps[0]!.context : undefined;
  const source = sourceOf(segment, chain, first);
  const last =
    stream.level === "step"
      ? addSteps(segment, { chain, stream, row, valid: segment.validTarget(target) })
      : { gain: Number.NaN, reward: sumOf(chain.columns!.rewards) };
  segment.tables.chains.add(chainRow(segment, { chain, stream, source, target, last }));
  addLineage(segment, chain, stream);
  segment.hashes.addChain(digestToBytes(chain.digest), chain.streamIndex);
  if (stream.level === "token") await addTokens(segment, stream, chain.columns!);
  await segment.drain();
}

/** Stored text of an ending, and its terminal flag. */
export function endingFacts(ending: Ending): { text: string; terminal: boolean } {
  switch (ending.kind) {
    case "terminal":
      return { text: "terminal", terminal: true };
    case "truncated":
      return { text: `truncated:${ending.limit}`, terminal: false };
    case "failed":
      // An agent's failure ends its own episode; any other failure truncates it.
      return { text: `failed:${ending.owner}`, terminal: ending.owner === "agent" };
    case "cancelled":
      return { text: "cancelled", terminal: false };
    default:
      return ending satisfies never;
  }
}

function chainRow(
  segment: SegmentWriter,
  {
    chain,
    stream,
    source,
    target,
    last,
  }: {
    chain: SealedChain;
    stream: Stream;
    source: number;
    target: number;
    last: { gain: number; reward: number };
  },
): RowOf<"chains"> {
  const { texts, tables } = segment;
  const { content } = chain;
  const ending = endingFacts(content.ending);
  const [steps, tokens] = stream.level === "step" ? [stream.steps.length, 0] : [0, stream.length];
  return {
    rollout: content.rolloutId,
    content: digestToBytes(chain.digest),
    stream: chain.streamIndex,
    level: texts.id(stream.level),
    family: texts.id(stream.family),
    group: texts.maybe(content.group),
    source,
    target,
    ending: texts.id(ending.text),
    terminal: ending.terminal,
    truncated: !ending.terminal,
    steps_start: tables.steps.rows - steps,
    steps_count: steps,
    tokens_start: BigInt(tables.tokens.rows),
    tokens_count: tokens,
    logprob_kind: stream.level === "token" ? texts.id(stream.logprobKind) : -1,
    tokenizer: stream.level === "token" ? texts.maybe(stream.tokenizer) : -1,
    final_gain: last.gain,
    final_reward: last.reward,
  };
}

function addLineage(segment: SegmentWriter, chain: SealedChain, stream: Stream): void {
  const { content } = chain;
  const { texts, tables, hashes, options } = segment;
  const { revision } = stream.level === "step" ? stream.steps[0]! : stream.segments[0]!;
  const { configs } = content;
  const bound: Record<(typeof HASHED_LINEAGE)[number], string | undefined> = {
    policy: revision.digest,
    environment: content.environment,
    environment_digest: content.environmentDigest,
    reward: rewardDigest(chain),
    sampling: digestJson("rollbook.replay.sampling", content.sampling),
    candidate_mixture: configs?.["candidate-mixture"],
    target: configs?.target,
    oracle: configs?.oracle,
    rng: configs?.rng,
    configs: configs === undefined ? undefined : digestJson("rollbook.replay.configs", configs),
  };
  for (const name of HASHED_LINEAGE) hashes.addLineage(name, bound[name]);
  tables.lineage.add({
    ...(Object.fromEntries(HASHED_LINEAGE.map((name) => [name, texts.maybe(bound[name])])) as Record<
      keyof typeof bound,
      number
    >),
    chain: tables.lineage.rows,
    policy_id: texts.id(revision.id),
    assignment: texts.maybe(content.assignment?.digest),
    sample: content.assignment?.sample ?? -1,
    seed: content.seed,
    reasons_version: options.reasons.version,
  });
}

/** Adds all steps and returns the cumulative values of the last step. */
function addSteps(
  segment: SegmentWriter,
  { chain, stream, row, valid }: { chain: SealedChain; stream: StepStream; row: number; valid: boolean },
): { gain: number; reward: number } {
  const { steps } = stream;
  const start = segment.tables.steps.rows;
  const continued = new Uint8Array(steps.length);
  for (let i = 1; i < steps.length; i++) continued[parentOf(steps, i)] = 1;
  const root = steps[0]!.before ?? Number.NaN;
  const paths: { depth: number; gain: number; reward: number }[] = [];
  const { terminal } = endingFacts(chain.content.ending);
  for (const [i, step] of steps.entries()) {
    const parent = parentOf(steps, i);
    const before = paths[parent] ?? { depth: -1, gain: 0, reward: 0 };
    const gain = rootGain(
      { before: step.before ?? Number.NaN, after: step.after ?? Number.NaN, root },
      segment.options.returns.epsilon,
    );
    const reward = step.reward ?? Number.NaN;
    const path = { depth: before.depth + 1, gain: before.gain + gain, reward: before.reward + reward };
    paths.push(path);
    // Only the last step has the ending of the chain; an earlier branch end was truncated, not terminated.
    const isLast = i === steps.length - 1;
    const ends = { terminal: isLast && terminal, truncated: isLast ? !terminal : continued[i] === 0 };
    const candidatesStart = segment.tables.candidates.rows;
    segment.tables.steps.add({
      chain: row,
      index: i,
      parent: parent < 0 ? -1 : start + parent,
      depth: path.depth,
      source: sourceOf(segment, chain, step.context),
      ...decisionOf(segment, step),
      candidates_start: candidatesStart,
      selected: candidatesStart + step.chosen,
      reward,
      before: step.before ?? Number.NaN,
      after: step.after ?? Number.NaN,
      gain,
      cumulative_gain: path.gain,
      cumulative_reward: path.reward,
      ...ends,
    });
    addCandidates(segment, { step, row: start + i, valid });
  }
  return paths.at(-1)!;
}

function decisionOf(segment: SegmentWriter, step: Step) {
  const { texts } = segment;
  return {
    policy_id: texts.id(step.revision.id),
    policy: texts.id(step.revision.digest),
    turn: step.turn,
    call: step.call ?? -1,
    reason: texts.maybe(step.reason),
    candidates_count: step.candidates.length,
    selectable_count: step.candidates.reduce((sum, each) => sum + Number(each.selectable), 0),
    probability: step.candidates[step.chosen]!.probability ?? step.propensity ?? Number.NaN,
  };
}

function addCandidates(
  segment: SegmentWriter,
  { step, row, valid }: { step: Step; row: number; valid: boolean },
): void {
  const { texts, tables, options } = segment;
  segment.saw("maxCandidates", step.candidates.length);
  for (const [index, each] of step.candidates.entries()) {
    const features = each.features ?? [];
    segment.saw("maxFeatures", features.length);
    const featuresStart = tables.candidate_features.rows;
    for (const value of float32(features, each)) tables.candidate_features.add({ value });
    tables.candidates.add({
      step: row,
      index,
      id: texts.id(each.id),
      selectable: each.selectable,
      labelled: each.label !== undefined,
      trainable: isTrainable(each, valid),
      selected: index === step.chosen,
      probability: each.probability ?? Number.NaN,
      label: each.label ?? Number.NaN,
      diagnostic: each.diagnostic ?? Number.NaN,
      reasons: each.reasons.length === 0 ? 0n : options.reasons.bits(each.reasons),
      provenance: texts.maybe(each.provenance),
      features_start: BigInt(featuresStart),
      features_length: features.length,
    });
  }
}

/** True if the candidate is selectable, the target valid, and the label present and finite. */
function isTrainable(each: Candidate, validTarget: boolean): boolean {
  return each.selectable && validTarget && each.label !== undefined && Number.isFinite(each.label);
}

async function addTokens(segment: SegmentWriter, stream: TokenStream, columns: TokenColumns): Promise<void> {
  const { length } = stream;
  const policy = new Int32Array(length).fill(-1);
  for (const part of stream.segments)
    policy.fill(segment.texts.id(part.revision.digest), part.start, part.end);
  const turn = new Int32Array(length).fill(-1);
  if (columns.turns !== undefined) turn.set(columns.turns);
  await segment.tables.tokens.append(
    {
      id: columns.ids,
      logprob: columns.logprobs,
      mask: columns.mask,
      turn,
      reward: columns.rewards ?? new Float32Array(length).fill(Number.NaN),
      policy,
    },
    length,
  );
}

function sourceOf(
  segment: SegmentWriter,
  chain: SealedChain,
  context: readonly number[] | undefined,
): number {
  const { content, task } = chain;
  return segment.source({
    task: content.task.id,
    taskDigest: content.task.digest,
    environment: content.environment,
    split: task?.split,
    dataSource: content.dataSource,
    features: float32(context ?? [], { id: "the context" }),
  });
}

/** Refuses a finite number that float32 cannot hold; it would silently become infinite. */
function float32(values: readonly number[], of: { id: string }): Float32Array {
  const features = Float32Array.from(values);
  const at = features.findIndex((value) => !Number.isFinite(value));
  if (at < 0) return features;
  throw new RollbookError(
    "feature-out-of-range",
    { of: of.id, index: at, value: values[at] },
    `feature ${at} of ${of.id} is ${values[at]}, more than float32 can hold. Scale the features.`,
  );
}

/** Digest of the rule that gave the rewards: late rewards have another rule than recorded ones. */
function rewardDigest({ content: { scores }, feedback }: SealedChain): Digest {
  const rule = scores.map(({ name, weight, scorer }) => [name, weight, scorer ?? null]);
  return feedback === undefined
    ? digestJson("rollbook.replay.reward", rule)
    : digestJson("rollbook.replay.late-reward", { rule, feedback });
}

/** Sum in order, added to `start`; NaN without rewards. */
export function sumOf(rewards: Float32Array | undefined, start = 0): number {
  return rewards === undefined ? Number.NaN : rewards.reduce((sum, value) => sum + value, start);
}
