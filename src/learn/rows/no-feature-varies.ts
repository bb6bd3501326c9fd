/** Warning about training rows whose contexts are all equal. The caller knows their source, and adds the next step. */
export const NO_FEATURE_VARIES = "no feature varies, so the policy cannot tell requests apart";
