/** Defines the two tiny policies of the tour: a writer that answers with a digit, a router that decides how long to
 *  think. Both store logits in a checkpoint and draw from their softmax. Pure; the same bits on every machine. */
import { bytesOf, type Digest, digestBytes, exp, log, parseId, type Rng } from "../../base/index.ts";
import { PolicyRevision, type Sealed, type SealedBlob, seal } from "../../contract/index.ts";

export const WRITER = parseId("writer");
export const ROUTER = parseId("router");
export const STRATEGIES = ["answer-at-once", "think-first"] as const;
const CHECKPOINT_KIND = "rollbook.checkpoint.f32";

export interface DemoRevision {
  readonly record: Sealed<PolicyRevision>;
  readonly checkpoint: SealedBlob;
  readonly logits: Float32Array;
}

/** Revision whose weights are stored beside it: family, id and parent are bound to the digest of its bytes. */
export function makeRevision(options: {
  family: typeof WRITER;
  number: number;
  logits: Float32Array;
  parent?: DemoRevision | undefined;
}): DemoRevision {
  const { family, number, logits, parent } = options;
  const bytes = bytesOf(logits);
  const digest = digestBytes(CHECKPOINT_KIND, bytes);
  const producedAtMs = 1_700_000_000_000 + number * 60_000;
  const record = seal(PolicyRevision, {
    family,
    id: parseId(`${family}-r${number}`),
    number: BigInt(number),
    digest,
    ...(parent === undefined
      ? {}
      : { parent: { id: parent.record.record.id, digest: parent.record.record.digest } }),
    checkpoint: {
      family,
      streamId: parseId(`${family}-demo`),
      manifestDigest: digest,
      objectDigest: digest,
      startedAtMs: producedAtMs - 1000,
      durableAtMs: producedAtMs,
      step: BigInt(number * 100),
    },
    producedAtMs,
  });
  return { record, checkpoint: { kind: CHECKPOINT_KIND, digest, bytes }, logits };
}

export function keyOf({ record }: DemoRevision): { id: typeof WRITER; digest: Digest } {
  return { id: record.record.id, digest: record.record.digest };
}

interface PolicyDraw {
  readonly choice: number;
  readonly probabilities: readonly number[];
  readonly logprob: number;
}

/** Draws one candidate, and returns the probability of the choice. */
export function draw(logits: ArrayLike<number>, rng: Rng): PolicyDraw {
  const weights = Array.from(logits, (each) => exp(each));
  const total = weights.reduce((sum, each) => sum + each, 0);
  const probabilities = weights.map((each) => each / total);
  let left = rng.float();
  let choice = probabilities.length - 1;
  for (let i = 0; i < choice; i++) {
    left -= probabilities[i]!;
    if (left < 0) choice = i;
  }
  return { choice, probabilities, logprob: log(probabilities[choice]!) };
}
