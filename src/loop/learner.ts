/** Which learners a configuration asks for. */
import { z } from "zod";
import { given } from "../base/index.ts";
import { type Learner, readSpec, readValueSpec } from "../book/train/index.ts";

const path = z.string().min(1).max(4096);
const amount = z.number().min(0);
const share = z.number().min(0).max(1);
const features = z.optional(path);
const positive = z.number().int().min(1);
/** Of the hidden layers of a network. */
const widths = z.array(positive.max(4096)).min(1).max(8);

export const learnerSchema = z.discriminatedUnion("kind", [
  z.strictObject({ kind: z.literal("ucb"), exploration: amount.default(1) }),
  z.strictObject({ kind: z.literal("linucb"), alpha: amount.default(1), features }),
  z.strictObject({
    kind: z.literal("thompson"),
    form: z.enum(["beta", "linear"]).default("beta"),
    draws: positive.default(256),
    floor: share.default(0.01),
    features,
  }),
  z.strictObject({ kind: z.enum(["auto", "ridge", "logistic", "knn"]), features }),
  z.strictObject({ kind: z.literal("bc"), l2: amount.default(3e-3), features }),
  z.strictObject({
    kind: z.literal("cql"),
    discount: share.default(0),
    conservatism: amount.default(1),
    steps: positive.default(6000),
    members: positive.max(32).default(1),
    hidden: z.optional(widths),
    rate: z.optional(z.number().gt(0)),
    decay: z.optional(amount),
    holdout: z.optional(share),
    goal: z.optional(z.enum(["bootstrap", "return"])),
    features,
  }),
  z.strictObject({
    kind: z.literal("ppo"),
    steps: positive.default(16_000),
    epochs: positive.default(10),
    rate: amount.default(3e-3),
    entropy: amount.default(0.01),
    hidden: widths.default([32]),
    features,
  }),
]);
export type LearnerConfig = z.output<typeof learnerSchema>;

/** Reads the feature specification that it names. */
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
