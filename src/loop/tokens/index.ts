export { tokenStages } from "./token-stages.ts";
export { readTokenInputs } from "./token-world.ts";
