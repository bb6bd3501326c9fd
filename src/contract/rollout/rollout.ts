/** The rollout artifact in two records. The content is what happened, independent of the worker. The envelope holds the
 *  worker, the times and the proofs. Batches, replay and training bind content only. */
import * as z from "zod";
import { type Digest, digestJson } from "../../base/index.ts";
import {
  count,
  dataSource,
  defineRecord,
  digest,
  finite,
  id,
  jsonObject,
  origin,
  type RecordOf,
  type Reference,
  refuse,
  timeMs,
  u64,
} from "../codec/index.ts";
import { environmentKey } from "../task/index.ts";
import { digestCallLog } from "./call.ts";
import { ending } from "./ending.ts";
import { FINAL_STATE_KIND } from "./final-state.ts";
import { commitTo, proof } from "./proof.ts";
import { checkStream, stream, streamReferences } from "./stream.ts";

export const RolloutContent = defineRecord({
  kind: "rollbook.rollout-content.v1",
  summary: "The events of one rollout: task, seed, calls, streams of choices, scores, ending.",
  shape: {
    rolloutId: id,
    environment: environmentKey,
    environmentDigest: z.optional(digest),
    task: z.strictObject({ id, digest: z.optional(digest) }),
    assignment: z.optional(z.strictObject({ digest, sample: count })),
    group: z.optional(id),
    seed: u64,
    dataSource,
    /** Temperature, top-p and all other sampling parameters, as sent. */
    sampling: jsonObject,
    /** Other configurations that shaped the data, by digest: the candidate mixture, the target, the oracle, the rng. */
    configs: z.optional(z.record(id as z.ZodType<string, string>, digest)),
    calls: z.array(digest).max(100_000),
    streams: z.array(stream).min(1).max(1024),
    scores: z
      .array(z.strictObject({ name: id, value: finite, weight: finite, scorer: z.optional(digest) }))
      .max(1024),
    ending,
    finalState: z.optional(digest),
  },
  references(content) {
    const { environmentDigest, task, assignment, calls, streams, finalState } = content;
    const found: Reference[] = [];
    if (environmentDigest !== undefined)
      found.push({
        digest: environmentDigest,
        kind: "rollbook.environment-package.v1",
        field: "environmentDigest",
      });
    if (task.digest !== undefined)
      found.push({ digest: task.digest, kind: "rollbook.task.v1", field: "task.digest" });
    if (assignment !== undefined)
      found.push({ digest: assignment.digest, kind: "rollbook.assignment.v1", field: "assignment.digest" });
    for (let i = 0; i < calls.length; i++)
      found.push({ digest: calls[i]!, kind: "rollbook.call.v1", field: `calls[${i}]` });
    for (let i = 0; i < streams.length; i++) streamReferences(streams[i]!, `streams[${i}]`, found);
    // An imported artifact may name a state that is not in the book.
    if (finalState !== undefined)
      found.push({
        digest: finalState,
        kind: FINAL_STATE_KIND,
        field: "finalState",
        external: true,
        what: "final state",
      });
    return found;
  },
  check(content) {
    content.streams.forEach((item, i) => {
      checkStream(item, `streams[${i}]`);
    });
    checkRevisions(content.streams);
    checkCallIndexes(content);
  },
});
export type RolloutContent = RecordOf<typeof RolloutContent>;

/** Delivery of a reply: `sent` if its last byte was handed to the client. `unknown` after a crash, unless a later
 *  prompt contains the reply. */
export const delivery = z.enum(["sent", "aborted", "unknown"]);
export type Delivery = z.output<typeof delivery>;

export const RolloutEnvelope = defineRecord({
  kind: "rollbook.rollout-envelope.v1",
  summary: "The worker, times, attempt and proofs of a rollout; binds the content by digest.",
  shape: {
    content: digest,
    worker: id,
    attempt: count,
    claim: z.optional(id),
    /** Name that the launcher gave to the launch of this rollout. */
    experiment: z.optional(id),
    startedAtMs: timeMs,
    endedAtMs: timeMs,
    callTimes: z.optional(
      z
        .array(
          z.strictObject({
            startedAtMs: timeMs,
            firstByteMs: z.optional(finite),
            durationMs: finite,
            delivery: z.optional(delivery),
          }),
        )
        .max(100_000),
    ),
    proofs: z.array(proof).max(10_000),
    origin: z.optional(origin),
  },
  references: (envelope) => [
    { digest: envelope.content, kind: RolloutContent.kind, field: "content" },
    ...envelope.proofs.flatMap((each, i) =>
      each.kind === "execution" || each.kind === "validator-bundle"
        ? [
            {
              digest: each.digest,
              kind: "",
              field: `proofs[${i}]`,
              external: true,
              what: `proof ${each.kind}`,
            },
          ]
        : [],
    ),
  ],
  check(envelope) {
    const seen = new Set<Digest>();
    for (const each of envelope.proofs) {
      if (seen.has(each.digest))
        throw refuse(
          "duplicate-proof",
          { digest: each.digest },
          `the proof ${each.digest} appears twice in one envelope. Keep one.`,
        );
      seen.add(each.digest);
    }
    if (envelope.endedAtMs < envelope.startedAtMs)
      throw refuse("bad-record", { field: "endedAtMs" }, "endedAtMs is before startedAtMs.");
  },
});
export type RolloutEnvelope = RecordOf<typeof RolloutEnvelope>;

/** Checks the proofs of an envelope that depend on the content alone. */
export function checkProofs(envelope: RolloutEnvelope, content: RolloutContent): void {
  for (const each of envelope.proofs) {
    const expected =
      each.kind === "call-log"
        ? digestCallLog(content.calls)
        : each.kind === "commitment"
          ? commitTo(envelope.content, each.nonce)
          : each.digest;
    if (expected !== each.digest) {
      throw refuse(
        "digest-mismatch",
        { proof: each.kind, expected, actual: each.digest },
        `the ${each.kind} proof says ${each.digest}, the content gives ${expected}.`,
      );
    }
  }
}

/** One id with two digests in one family means that weights were swapped under a name. */
function checkRevisions(streams: RolloutContent["streams"]): void {
  const families = new Map<string, Map<string, Digest>>();
  for (const item of streams) {
    const digests = families.get(item.family) ?? new Map<string, Digest>();
    families.set(item.family, digests);
    for (const { revision } of item.level === "token" ? item.segments : item.steps) {
      const known = digests.get(revision.id) ?? revision.digest;
      if (known !== revision.digest) {
        throw refuse(
          "revision-conflict",
          { revision: revision.id, digests: [known, revision.digest] },
          `revision ${revision.id} of ${item.family} appears with two digests, ${known} and ${revision.digest}. New weights need a new revision id.`,
        );
      }
      digests.set(revision.id, known);
    }
  }
}

function checkCallIndexes(content: Pick<RolloutContent, "streams" | "calls">): void {
  for (const [s, item] of content.streams.entries()) {
    for (const part of item.level === "token" ? item.segments : item.steps) {
      if (part.call !== undefined && part.call >= content.calls.length) {
        throw refuse(
          "bad-record",
          { field: `streams[${s}]`, call: part.call },
          `streams[${s}] names call ${part.call}, the rollout has ${content.calls.length}.`,
        );
      }
    }
  }
}

/** Rollout id that depends only on the assignment and the sample: a rerun gives the same id. */
export function rolloutIdFor(assignment: Digest, sample: number): string {
  return `r-${digestJson("rollbook.rollout-id.v1", [assignment, sample]).slice(7, 31)}`;
}
