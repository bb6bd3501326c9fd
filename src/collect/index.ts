export { isTaken, itemOf } from "./admission.ts";
