/** What a configuration says of a loop that trains a language model on tokens. */
import { z } from "zod";

const path = z.string().min(1).max(4096);
const positive = z.number().int().min(1);
const amount = z.number().min(0);

export const tokenWorld = z.strictObject({
  kind: z.literal("tokens"),
  /** JSON Lines, as for `rollbook launch`. */
  tasks: path,
  /** An executor as for `rollbook launch` (default: one chat call with the payload's question, scored against the label). */
  agent: z.optional(path),
  /** The checkpoint that the run begins with: config.json, model.safetensors and a tokenizer. */
  model: path,
  /** The family of the model's revisions. */
  family: z.string().min(1).max(256).default("model"),
  environment: z.string().default("local@1"),
  /** How the built-in agent samples. */
  sampling: z
    .strictObject({ maxTokens: positive.default(64), temperature: z.number().gt(0).max(10).default(1) })
    .prefault({}),
  /** Tasks that nothing is trained from: a new revision answers them before it is released. */
  heldOut: z.optional(
    z.strictObject({
      tasks: path,
      /** Rollouts each time, one for each task. */
      rollouts: positive,
      /** Windows between two evaluations; the last window is always evaluated. */
      every: positive.default(1),
      /** A revision whose mean is further below the best one before it is not released (default: none is refused). */
      drop: z.optional(amount),
    }),
  ),
  /** A Python with torch, transformers and safetensors. */
  python: z.string().min(1).default("python3"),
  device: z.string().min(1).default("auto"),
  /** Threads of torch on a CPU, for server and trainer each. */
  threads: z.optional(positive),
  /** Prompts that are decoded at a time. */
  maxBatch: positive.default(1024),
});

export const TOKEN_ALGORITHMS = ["grpo", "rloo", "sft", "frozen"] as const;

export const tokenLearner = z.strictObject({
  kind: z.enum(TOKEN_ALGORITHMS),
  /** Of AdamW. */
  rate: amount.default(1e-4),
  weightDecay: amount.default(0),
  gradientNorm: z.number().gt(0).default(1),
  /** Times that a step goes over the batch, and optimizer steps of each. */
  passes: positive.default(2),
  minibatches: positive.default(1),
  clip: z.number().gt(0).lt(1).default(0.2),
  clipHigh: z.optional(z.number().gt(0)),
  /** Passes end once the approximate KL divergence is above this. */
  klLimit: z.number().gt(0).default(0.1),
  /** Largest importance weight of a stale token. */
  importanceCap: z.number().min(1).default(2),
  /** Largest difference between recorded and recomputed log-probabilities. */
  tolerance: z.number().gt(0).default(0.02),
  /** Rows in memory at a time. */
  rows: positive.default(1024),
});

export type TokenWorldConfig = z.output<typeof tokenWorld>;
export type TokenLearnerConfig = z.output<typeof tokenLearner>;

export function isTokenLearner(learner: { kind: string }): learner is TokenLearnerConfig {
  return (TOKEN_ALGORITHMS as readonly string[]).includes(learner.kind);
}

/** The names of the Python trainer. */
export function trainerOptions(
  { kind, weightDecay, gradientNorm, clipHigh, klLimit, importanceCap, ...rest }: TokenLearnerConfig,
  { temperature, seed }: { temperature: number; seed: number },
): Readonly<Record<string, number | string>> {
  return {
    ...{
      ...rest,
      algorithm: kind,
      weight_decay: weightDecay,
      gradient_norm: gradientNorm,
      temperature,
      seed,
    },
    ...{ clip_high: clipHigh ?? rest.clip, kl_limit: klLimit, importance_cap: importanceCap },
  };
}
