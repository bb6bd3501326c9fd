/** A Python function, written from a description of what it does. */
import { implementFamily } from "./pipeline/index.ts";

export const pyImplement = implementFamily("py-implement", "python");
