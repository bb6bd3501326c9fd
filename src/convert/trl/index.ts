export { trlDpo } from "./trl-dpo.ts";
export { trlGrpo } from "./trl-grpo.ts";
export { trlKto } from "./trl-kto.ts";
export { trlRollouts } from "./trl-rollouts.ts";
export { trlSft } from "./trl-sft.ts";
