/** Copies JSON and freezes the copy at every depth. Pure. */
import type { Json } from "./canonical-json.ts";

export function frozenCopy<T extends Json>(value: T): T {
  // A copy through text shares nothing, and a key named `__proto__` stays a key.
  return freeze(JSON.parse(JSON.stringify(value)) as T);
}

function freeze<T>(value: T): T {
  if (typeof value === "object" && value !== null) {
    for (const item of Object.values(value)) freeze(item);
    Object.freeze(value);
  }
  return value;
}
