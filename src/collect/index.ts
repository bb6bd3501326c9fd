export { isTaken, itemOf } from "./admission.ts";
export { listenOn } from "./listen.ts";
