/** A small Python module with mistakes in it, to be repaired. */
import { bugfixFamily } from "./pipeline/index.ts";

export const pyBugfix = bugfixFamily("py-bugfix", "python");
