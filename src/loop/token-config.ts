/** Defines the configuration of a loop that trains a language model on tokens. */
import * as z from "zod";

const path = z.string().min(1).max(4096);
const positive = z.number().int().min(1);
const amount = z.number().min(0);

/** Defaults of the settings that fit a run to its machine. They change how a window is computed, not its task. */
export const TOKEN_MACHINE = {
  world: { python: "python3", device: "auto", maxBatch: 1024, threads: undefined },
  learner: { rows: 1024 },
} as const;

export const tokenWorld = z.strictObject({
  kind: z.literal("tokens").describe("A language model that is trained on its tokens."),
  tasks: path.describe("JSON Lines, as for `rollbook launch`."),
  agent: z
    .optional(path)
    .describe(
      "An executor as for `rollbook launch` (default: one chat call with the payload's question, scored against the label).",
    ),
  model: path.describe(
    "The checkpoint that the run begins with: config.json, model.safetensors and a tokenizer.",
  ),
  family: z.string().min(1).max(256).default("model").describe("The family of the model's revisions."),
  environment: z
    .string()
    .default("local@1")
    .describe("The environment that rollouts name, with its version."),
  sampling: z
    .strictObject({
      maxTokens: positive.default(64).describe("Tokens of one answer."),
      temperature: z
        .number()
        .gt(0)
        .max(10)
        .default(1)
        .describe("Temperature of the samples; the learner uses the same temperature."),
    })
    .prefault({})
    .describe("How the built-in agent samples."),
  heldOut: z
    .optional(
      z.strictObject({
        tasks: path.describe("JSON Lines, as for `rollbook launch`."),
        rollouts: positive.describe("Rollouts of one evaluation, one for each task."),
        every: positive
          .default(1)
          .describe("Windows between two evaluations; the last window is always evaluated."),
        drop: z
          .optional(amount)
          .describe(
            "Largest fall of the mean reward below that of the best earlier revision; a revision that falls further is not released (default: no limit).",
          ),
      }),
    )
    .describe("Tasks that are not used for training: a new revision answers them before it is released."),
  python: z
    .string()
    .min(1)
    .default(TOKEN_MACHINE.world.python)
    .describe("A Python with torch, transformers and safetensors."),
  device: z.string().min(1).default(TOKEN_MACHINE.world.device).describe("`cpu`, `cuda` or `cuda:1`."),
  threads: z
    .optional(positive)
    .describe("Threads of torch on a CPU, for the server and for the trainer (default: as torch chooses)."),
  maxBatch: positive
    .default(TOKEN_MACHINE.world.maxBatch)
    .describe("Prompts that are decoded at a time. A run that ran out of memory may be resumed with fewer."),
});

const TOKEN_ALGORITHMS = ["grpo", "rloo", "sft", "frozen"] as const;

export const tokenLearner = z.strictObject({
  kind: z
    .enum(TOKEN_ALGORITHMS)
    .describe(
      "Learns from tokens. `sft` learns from rows with a reward above 0; `frozen` learns nothing, as a control.",
    ),
  rate: amount.default(1e-4).describe("Learning rate of AdamW."),
  decay: z
    .optional(
      z
        .strictObject({
          from: positive.describe("The last window with the full rate."),
          until: positive.describe("The first window with the lowest rate."),
          to: z.number().min(0).max(1).default(0.1).describe("The lowest rate, as a share of `rate`."),
        })
        .refine(({ from, until }) => from < until, "has an `until` that is not after its `from`"),
    )
    .describe("The learning rate falls linearly between two windows (default: it stays the same)."),
  weightDecay: amount.default(0).describe("Weight decay of AdamW."),
  gradientNorm: z.number().gt(0).default(1).describe("Largest norm of a gradient."),
  passes: positive.default(2).describe("Passes of a step over the batch."),
  minibatches: positive.default(1).describe("Optimizer steps of one pass."),
  clip: z
    .number()
    .gt(0)
    .lt(1)
    .default(0.2)
    .describe("Largest distance from 1 of the ratio between new and recorded probabilities."),
  clipHigh: z
    .optional(z.number().gt(0))
    .describe("Largest distance above 1 of that ratio (default: `clip`)."),
  klLimit: z
    .number()
    .gt(0)
    .default(0.1)
    .describe("Passes end once the approximate KL divergence is above this."),
  importanceCap: z
    .number()
    .min(1)
    .default(2)
    .describe("Largest importance weight of a token that older weights sampled."),
  tolerance: z
    .number()
    .gt(0)
    .default(0.02)
    .describe("Largest difference between recorded and recomputed log-probabilities."),
  rows: positive
    .default(TOKEN_MACHINE.learner.rows)
    .describe(
      "Rows in memory at a time; changes how a step is computed, not its result. A run that ran out of memory may be resumed with fewer.",
    ),
});

export type TokenWorldConfig = z.output<typeof tokenWorld>;
export type TokenLearnerConfig = z.output<typeof tokenLearner>;

export function isTokenLearner(learner: { kind: string }): learner is TokenLearnerConfig {
  return (TOKEN_ALGORITHMS as readonly string[]).includes(learner.kind);
}

/** Options of the step of one window, under the names of the Python trainer. */
export function trainerOptions(
  {
    kind,
    rate,
    decay,
    weightDecay,
    gradientNorm,
    clipHigh,
    klLimit,
    importanceCap,
    ...rest
  }: TokenLearnerConfig,
  { temperature, seed, window }: { temperature: number; seed: number; window: number },
): Readonly<Record<string, number | string>> {
  return {
    ...rest,
    rate: rate * rateShare(decay, window),
    algorithm: kind,
    weight_decay: weightDecay,
    gradient_norm: gradientNorm,
    temperature,
    seed,
    ...{ clip_high: clipHigh ?? rest.clip, kl_limit: klLimit, importance_cap: importanceCap },
  };
}

/** Share of the learning rate in a window: 1 up to `from`, then falling linearly to `to` at `until`. */
function rateShare(decay: TokenLearnerConfig["decay"], window: number): number {
  if (decay === undefined) return 1;
  const { from, until, to } = decay;
  const passed = Math.min(1, Math.max(0, (window - from) / (until - from)));
  return 1 - (1 - to) * passed;
}
