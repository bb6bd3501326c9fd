/** Warning about training rows whose contexts are all equal, such as those of a replay store without features. */
export const NO_FEATURE_VARIES =
  "no feature varies, so the policy cannot tell requests apart. A training with --replay sees no prompts: train from the book, or with --data";
