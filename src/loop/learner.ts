/** Defines the learners of a configuration. */
import * as z from "zod";
import { given } from "../base/index.ts";
import { type Learner, readSpec, readValueSpec } from "../book/train/index.ts";

const path = z.string().min(1).max(4096);
const amount = z.number().min(0);
const share = z.number().min(0).max(1);
const features = z.optional(path).describe("A feature specification in YAML (default: the built-in one).");
const positive = z.number().int().min(1);
const widths = z.array(positive.max(4096)).min(1).max(8);

export const learnerSchema = z.discriminatedUnion("kind", [
  z.strictObject({
    kind: z.literal("ucb").describe("Upper confidence bounds of the candidates' means."),
    exploration: amount.default(1).describe("Factor of the exploration bonus."),
  }),
  z.strictObject({
    kind: z.literal("linucb").describe("Upper confidence bounds of a linear model."),
    alpha: amount.default(1).describe("Factor of the exploration bonus."),
    features,
  }),
  z.strictObject({
    kind: z.literal("thompson").describe("Thompson sampling."),
    form: z.enum(["beta", "linear"]).default("beta").describe("The model that is drawn from."),
    draws: positive.default(256).describe("Draws that give the probability of a choice."),
    floor: share.default(0.01).describe("Least probability of a choice."),
    features,
  }),
  z.strictObject({
    kind: z
      .enum(["auto", "ridge", "logistic", "knn"])
      .describe(
        "Predicts the reward of each candidate; `auto` mixes ridge, logistic and knn, and cross-validation sets the share of each.",
      ),
    features,
  }),
  z.strictObject({
    kind: z.literal("bc").describe("Behaviour cloning."),
    l2: amount.default(3e-3).describe("Penalty of the squared weights."),
    features,
  }),
  z.strictObject({
    kind: z.literal("cql").describe("Conservative Q-learning."),
    discount: share
      .default(0)
      .describe(
        "Above 0: `cql` adds the value of the next decision, multiplied by this. 0: it learns from the return, as the other learners do, with the discount of the loop (`discount`).",
      ),
    conservatism: amount
      .default(1)
      .describe(
        "Weight of the conservative loss. Rewards between 0 and 1 need a small weight, from 0.002 to 0.01.",
      ),
    steps: positive.default(6000).describe("Gradient steps."),
    members: positive.max(32).default(1).describe("Networks that are trained independently and averaged."),
    hidden: z.optional(widths).describe("Widths of the hidden layers (default: as `rollbook train cql`)."),
    rate: z.optional(z.number().gt(0)).describe("Learning rate (default: as `rollbook train cql`)."),
    decay: z.optional(amount).describe("Weight decay (default: as `rollbook train cql`)."),
    holdout: z
      .optional(share)
      .describe(
        "Share of the training tasks whose rows are held out for the learning curve (default: 0.1). Training does not stop early.",
      ),
    goal: z
      .optional(z.enum(["bootstrap", "return"]))
      .describe(
        "With `discount` above 0. `bootstrap`: learns from the value of the next decision; `return`: from the logged rewards to the end (default: bootstrap).",
      ),
    features,
  }),
  z.strictObject({
    kind: z.literal("ppo").describe("Proximal policy optimization on the logged rows."),
    steps: positive.default(16_000).describe("Choices in the world that is made of the logged rows."),
    epochs: positive.default(10).describe("Passes over each batch of steps."),
    rate: amount.default(3e-3).describe("Learning rate."),
    entropy: amount.default(0.01).describe("Weight of the entropy bonus."),
    hidden: widths.default([32]).describe("Widths of the hidden layers."),
    features,
  }),
]);
export type LearnerConfig = z.output<typeof learnerSchema>;

/** Reads the feature specification that the learner names. */
export function learnerOf(learner: LearnerConfig): Learner {
  if (learner.kind === "ucb") return learner;
  const { features: named, ...rest } = learner;
  const flags = named === undefined ? {} : { features: named };
  switch (rest.kind) {
    case "cql": {
      const { hidden, rate, decay, holdout, goal, ...config } = rest;
      return { ...config, ...given({ hidden, rate, decay, holdout, goal }), spec: readSpec(flags) };
    }
    case "linucb":
    case "thompson":
    case "bc":
    case "ppo":
      return { ...rest, spec: readSpec(flags) };
    default:
      return { ...rest, spec: readValueSpec(flags) };
  }
}
