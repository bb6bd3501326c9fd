export { isTaken } from "./admission.ts";
