/** Small pieces of text for messages: digests, counts, numbers. Pure. */
import type { Digest } from "./digest.ts";

/** First twelve hex digits of a digest: enough for a user to name it. */
export function short(digest: Digest | string): string {
  return digest.replace(/^sha256:/, "").slice(0, 12);
}

export function thousands(value: number): string {
  return String(value).replace(/\B(?=(\d{3})+(?!\d))/g, " ");
}

/** `1 artifact`, `2 artifacts`. */
export function plural(count: number, noun: string): string {
  if (count === 1) return `1 ${noun}`;
  const ending = /[^aeiou]y$/.test(noun)
    ? `${noun.slice(0, -1)}ies`
    : /(?:ch|sh|s|x)$/.test(noun)
      ? `${noun}es`
      : `${noun}s`;
  return `${thousands(count)} ${ending}`;
}

export function percent(share: number): string {
  return `${(100 * share).toFixed(1)} %`;
}

/** At most six significant digits, for people. JSON output keeps all digits. */
export function figure(value: number): string {
  return String(Number(value.toPrecision(6)));
}

/** Replaces control characters, so that text from records is safe to print on a terminal. */
export function printable(text: string): string {
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g, "\ufffd");
}
