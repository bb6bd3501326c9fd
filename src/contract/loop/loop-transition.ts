/** The records of a training loop. A transition names the state that a window reached and the contents it used. Its
 *  envelope holds the time and the digests of the sealed records. A transition holds no time, no process and no digest
 *  that depends on them. A run that was killed and resumed therefore seals the same transitions as an uninterrupted
 *  run. */
import * as z from "zod";
import { compareUtf8 } from "../../base/index.ts";
import {
  count,
  defineRecord,
  digest,
  finite,
  id,
  probability,
  type RecordOf,
  refuse,
  text,
  timeMs,
  u64,
} from "../codec/index.ts";
import { revisionKey } from "../policy/index.ts";

/** States of a window in order; a window ends as released or kept. */
export const WINDOW_STATES = [
  ...["planned", "collecting", "sealed", "scored", "trained", "judged", "released", "kept"],
] as const;
export type WindowState = LoopTransition["step"]["state"];

const policy = z.discriminatedUnion("kind", [
  z.strictObject({ kind: z.literal("behaviour") }),
  z.strictObject({ kind: z.literal("revision"), revision: revisionKey }),
]);
/** The serving policy: the behaviour policy of the first window, or a released revision. */
export type LoopPolicy = z.output<typeof policy>;

/** Exact expected reward, in worlds where it is known. */
const exactValue = z.optional(finite);

/** Estimate of the reward; absent if the log does not support an estimate. */
const rewardEstimate = z.optional(
  z.strictObject({ value: finite, low: finite, high: finite, level: probability }),
);
const outcome = z.enum(["pass", "refuse"]);
const reasons = z.array(text()).max(1000);

const step = z.discriminatedUnion("state", [
  z.strictObject({
    state: z.literal("planned"),
    /** Digest of the configuration, without the place of the run (book, queue, gateways). */
    config: digest,
    /** Digest of everything that the window collects from: tasks, models, agent. */
    world: digest,
    policy,
    /** Router around `policy`, with the exploration of a collecting window. */
    router: revisionKey,
    /** Releases before this window. */
    releases: count,
    /** Revision that gateways on the book serve, if it is not the last release of the run. The window is judged against
     *  it. */
    baseline: z.optional(revisionKey),
    value: exactValue,
    best: exactValue,
  }),
  z.strictObject({
    state: z.literal("collecting"),
    experiment: id,
    seed: u64,
    rollouts: count,
    /** Digest of the rows, in order, and of the samples of each row. Rollout ids are derived from it. */
    assigned: digest,
  }),
  z.strictObject({ state: z.literal("sealed"), members: digest, rollouts: count }),
  z.strictObject({
    state: z.literal("scored"),
    /** Digest of the batch without manifest, ledger and proofs, which a trainer does not read. */
    batch: digest,
    rows: count,
    considered: count,
    excluded: z.array(z.strictObject({ reason: id, rollouts: count })).max(1000),
    rewardMean: finite,
  }),
  z.strictObject({
    state: z.literal("trained"),
    /** Revision of the first learner. */
    revision: revisionKey,
    rows: count,
    /** Present if several learners are compared: all of them, in their order. */
    candidates: z.optional(
      z
        .array(z.strictObject({ learner: id, revision: revisionKey, value: exactValue }))
        .min(2)
        .max(64),
    ),
  }),
  z.strictObject({
    state: z.literal("judged"),
    outcome,
    reasons,
    /** Digest of the verdict without times; absent if too few rows were left to judge. */
    verdict: z.optional(digest),
    estimate: rewardEstimate,
    /** Present if whole rollouts were judged: the weight of a reward one decision later. Estimates are then returns of
     *  a rollout; without `discount` they are rewards of a decision. */
    discount: z.optional(probability),
    /** Present if several learners are compared: the gate's result for each. Outcome, reasons and estimate above belong
     *  to the best candidate that passed, else to all candidates. */
    candidates: z.optional(
      z
        .array(z.strictObject({ learner: id, outcome, reasons, estimate: rewardEstimate }))
        .min(2)
        .max(64),
    ),
    /** Revision that passed, if several are compared. */
    passed: z.optional(revisionKey),
  }),
  z.strictObject({
    state: z.literal("released"),
    revision: revisionKey,
    /** Router that was judged and may serve. */
    router: digest,
    value: exactValue,
  }),
  z.strictObject({ state: z.literal("kept"), policy, router: digest, value: exactValue }),
]);

export const LoopTransition = defineRecord({
  kind: "rollbook.loop-transition.v1",
  summary: "One transition of one window of a training loop: what was reached, and from which transitions.",
  shape: {
    run: id,
    window: z.number().int().min(1).max(1_000_000),
    /** Transitions that this one follows. Together they commit to the whole run before this transition. */
    previous: z.array(digest).max(2),
    step,
  },
  references: ({ previous, step: at }) => [
    ...previous.map((each, i) => ({
      digest: each,
      kind: "rollbook.loop-transition.v1",
      field: `previous[${i}]`,
    })),
    ...(at.state === "sealed" ? [{ digest: at.members, kind: LoopMembers.kind, field: "step.members" }] : []),
  ],
  check({ window, previous, step: { state } }) {
    if (previous.length === 0 && (window > 1 || state !== "planned"))
      throw refuse(
        "bad-record",
        { field: "previous", window, state },
        `window ${window} is ${state} and follows no transition. Only the first window's plan follows none.`,
      );
  },
});
export type LoopTransition = RecordOf<typeof LoopTransition>;

export const LoopMembers = defineRecord({
  kind: "rollbook.loop-members.v1",
  summary: "The rollouts of one window of a training loop, fixed by assignment.",
  shape: {
    run: id,
    window: z.number().int().min(1).max(1_000_000),
    rollouts: z.array(z.strictObject({ id, content: digest })).max(10_000_000),
  },
  references: ({ rollouts }) =>
    rollouts.map(({ content }, i) => ({
      digest: content,
      kind: "rollbook.rollout-content.v1",
      field: `rollouts[${i}].content`,
    })),
  check({ rollouts }) {
    for (let i = 1; i < rollouts.length; i++)
      if (compareUtf8(rollouts[i - 1]!.id, rollouts[i]!.id) >= 0)
        throw refuse(
          "bad-record",
          { field: `rollouts[${i}]` },
          `rollouts[${i}] is not sorted by the UTF-8 bytes of its id, or appears twice.`,
        );
  },
});
export type LoopMembers = RecordOf<typeof LoopMembers>;

const RECORD_KINDS = {
  batch: "rollbook.trainer-batch.v1",
  revision: "rollbook.policy-revision.v1",
  router: "rollbook.policy-revision.v1",
  baseline: "rollbook.policy-revision.v1",
  verdict: "rollbook.gate-verdict.v1",
} as const;

export const LoopEnvelope = defineRecord({
  kind: "rollbook.loop-envelope.v1",
  summary:
    "The time of a transition of a training loop, and the records that the transition made. Names the transition by digest.",
  shape: {
    transition: digest,
    atMs: timeMs,
    batch: z.optional(digest),
    revision: z.optional(digest),
    router: z.optional(digest),
    baseline: z.optional(digest),
    verdict: z.optional(digest),
    /** Present if several learners are compared: the record of each, in their order. */
    candidates: z.optional(z.array(digest).min(2).max(64)),
  },
  references: (envelope) => [
    { digest: envelope.transition, kind: LoopTransition.kind, field: "transition" },
    ...(Object.keys(RECORD_KINDS) as (keyof typeof RECORD_KINDS)[]).flatMap((name) => {
      const named = envelope[name];
      return named === undefined ? [] : [{ digest: named, kind: RECORD_KINDS[name], field: name }];
    }),
    ...(envelope.candidates ?? []).map((each, i) => ({
      ...{ digest: each, kind: RECORD_KINDS.revision, field: `candidates[${i}]` },
    })),
  ],
});
export type LoopEnvelope = RecordOf<typeof LoopEnvelope>;
