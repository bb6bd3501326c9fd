/** A JavaScript function, written from a description of what it does. */
import { implementFamily } from "./pipeline/implement.ts";

export const jsImplement = implementFamily("js-implement", "javascript");
