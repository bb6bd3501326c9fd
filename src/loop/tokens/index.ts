export { tokenStages } from "./token-stages.ts";
