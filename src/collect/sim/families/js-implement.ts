/** A JavaScript function, written from a description of what it does. */
import { implementFamily } from "./pipeline/index.ts";

export const jsImplement = implementFamily("js-implement", "javascript");
