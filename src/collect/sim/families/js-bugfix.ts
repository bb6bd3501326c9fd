/** A small JavaScript module with mistakes in it, to be repaired. */
import { bugfixFamily } from "./pipeline/index.ts";

export const jsBugfix = bugfixFamily("js-bugfix", "javascript");
