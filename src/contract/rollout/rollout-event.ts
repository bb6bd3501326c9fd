/** The history of a rollout: opened, called, graded and closed, one record per event. A recorder journals events while
 *  the rollout is open, and puts them into the book with the artifact. A later recorder learns from them which calls
 *  belong to which rollout, and if sealing was interrupted. Events prove nothing. */
import * as z from "zod";
import {
  columnRef,
  columnReference,
  count,
  dataSource,
  defineRecord,
  digest,
  finite,
  id,
  type RecordOf,
  text,
  timeMs,
  u64,
} from "../codec/index.ts";
import { revisionKey } from "../policy/index.ts";
import { environmentKey } from "../task/index.ts";
import { publicKey } from "../trust/index.ts";
import { ending } from "./ending.ts";
import { delivery } from "./rollout.ts";
import { logprobKind, step } from "./stream.ts";

/** Token ids as the upstream returned them. The first `keep` tokens of the prompt repeat the previous call with tokens
 *  (its prompt, then its first sample). A resent history is thus stored once. */
const tokens = z.strictObject({
  family: id,
  revision: revisionKey,
  logprobKind,
  tokenizer: z.optional(digest),
  keep: count,
  prompt: columnRef("u32"),
  samples: z
    .array(z.strictObject({ ids: columnRef("u32"), logprobs: columnRef("f32") }))
    .min(1)
    .max(1024),
});

export const rolloutRun = z.strictObject({
  worker: id,
  attempt: count,
  claim: z.optional(id),
  experiment: z.optional(id),
});

const event = z.discriminatedUnion("kind", [
  z.strictObject({
    kind: z.literal("opened"),
    /** Owner of the rollout: another recorder on the same book leaves the rollout alone. */
    worker: id,
    environment: environmentKey,
    task: z.strictObject({ id, digest: z.optional(digest) }),
    assignment: z.optional(z.strictObject({ digest, sample: count })),
    group: z.optional(id),
    seed: u64,
    dataSource,
    maxTurns: z.optional(count),
    budgetUsd: z.optional(finite),
    /** The executor and its claim, if the recorder does not run the rollout itself. */
    run: z.optional(rolloutRun),
    /** The named router that chooses the models, instead of the router that the recorder serves. */
    router: z.optional(digest),
    atMs: timeMs,
  }),
  z.strictObject({
    kind: z.literal("called"),
    index: count,
    call: digest,
    /** Model choices that led to this call; more than one after a failover. */
    steps: z.array(step).max(1024),
    stepFamily: z.optional(id),
    /** Index of the call that this call continues, found by comparing messages. */
    parent: z.optional(count),
    tokens: z.optional(tokens),
    outcome: z.enum(["answered", "refused", "provider-failed", "cut", "disconnected"]),
    startedAtMs: timeMs,
    firstByteMs: z.optional(finite),
    durationMs: finite,
    /** Delivery of earlier replies of this rollout. */
    deliveries: z.array(z.strictObject({ call: count, delivery })).max(10_000),
  }),
  z.strictObject({
    kind: z.literal("graded"),
    call: z.optional(count),
    name: id,
    value: finite,
    source: text(512),
    idempotencyKey: text(256),
    atMs: timeMs,
  }),
  /** Written before the artifact: a closed event without its envelope means that sealing was interrupted. */
  z.strictObject({
    kind: z.literal("closed"),
    ending,
    scores: z
      .array(z.strictObject({ name: id, value: finite, weight: finite, scorer: z.optional(digest) }))
      .max(1024),
    finalState: z.optional(digest),
    /** Absent if there was nothing to seal. */
    envelope: z.optional(digest),
    /** Receipt of admission, if there is one. */
    receipt: z.optional(digest),
    /** Key that signs the envelope. After a crash it may have to sign the envelope again. */
    signer: z.optional(publicKey),
    atMs: timeMs,
  }),
]);

export const RolloutEvent = defineRecord({
  kind: "rollbook.rollout-event.v1",
  summary: "One entry in the journal of an open rollout: opened, called, graded or closed.",
  shape: { rollout: id, event },
  references: ({ event: each }) =>
    each.kind !== "called"
      ? []
      : [
          { digest: each.call, kind: "rollbook.call.v1", field: "event.call" },
          ...(each.tokens === undefined
            ? []
            : [
                columnReference(each.tokens.prompt, "event.tokens.prompt"),
                ...each.tokens.samples.flatMap(({ ids, logprobs }, i) => [
                  columnReference(ids, `event.tokens.samples[${i}].ids`),
                  columnReference(logprobs, `event.tokens.samples[${i}].logprobs`),
                ]),
              ]),
        ],
});
export type RolloutEvent = RecordOf<typeof RolloutEvent>;
