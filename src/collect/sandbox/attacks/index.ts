export type { Attack } from "./attack.ts";
export { attacksFor } from "./catalogue.ts";
export { openWitness, type Witness } from "./witness.ts";
