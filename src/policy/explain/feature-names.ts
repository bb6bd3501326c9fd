/** The names a person knows features by. Hashed words are named by the words of the prompt that fall into their bucket.
 *  In: how a model reads a question, a question. Out: a name for every place of its vector. */
import type { DecisionContext } from "../decision.ts";
import { type FeatureLayout, PROMPT_FEATURES, type ValueSpec } from "../feature-spec.ts";
import { hashText, mix, scanPrompt } from "../scan-prompt.ts";
import { denseSizeOf, embeddingAt, PROMPT_MEASURES } from "../value/index.ts";

export type NameFeature = (index: number) => string;

/** Of a word that training saw and this question lacks: its bucket does not tell it. */
const ABSENT = "words that it does not have";

export function firstNames(layout: FeatureLayout, context: DecisionContext): NameFeature {
  const { spec, fieldAt, denseSize } = layout;
  const words = wordNames(spec.wordBuckets, context.prompt);
  return (index) => {
    if (index < PROMPT_FEATURES.length) return `${PROMPT_FEATURES[index]} of the prompt`;
    if (index >= denseSize) return words.get(index - denseSize) ?? ABSENT;
    const field = fieldAt.findLastIndex((at) => at <= index);
    const { name, kind } = spec.fields[field]!;
    return kind === "number" && index === fieldAt[field]! + 1 ? `field ${name} is given` : `field ${name}`;
  };
}

/** `ids`: the hashed ids that are columns. */
export function valueNames(spec: ValueSpec, ids: Uint32Array, context: DecisionContext): NameFeature {
  const terms = wordNames(spec.wordBuckets, context.prompt);
  for (const { name, kind } of spec.fields) {
    const value = context.fields[name];
    if (kind !== "category" || value === undefined) continue;
    const hash = hashText(String(value)) ^ hashText(`field ${name}`);
    terms.set(mix(hash) & (spec.wordBuckets - 1), `field ${name} is ${value}`);
  }
  const numbers = spec.fields.filter(({ kind }) => kind === "number");
  const [vector, dense] = [embeddingAt(spec), denseSizeOf(spec)];
  return (index) => {
    if (index < PROMPT_MEASURES) return `${PROMPT_FEATURES[index + 1]} of the prompt`;
    if (index >= dense) return terms.get(ids[index - dense]!) ?? ABSENT;
    if (index >= vector) return "the meaning of the prompt";
    const { name } = numbers[(index - PROMPT_MEASURES) >> 1]!;
    return (index - PROMPT_MEASURES) % 2 === 0 ? `field ${name}` : `field ${name} is given`;
  };
}

/** The words and pairs of the prompt by bucket, hashed as the reader hashes them. */
function wordNames(buckets: number, prompt: string): Map<number, string> {
  const names = new Map<number, string>();
  const mask = buckets - 1;
  const add = (hash: number, name: string) => {
    const bucket = mix(hash) & mask;
    const before = names.get(bucket);
    if (before === undefined) names.set(bucket, name);
    else if (!before.includes(name)) names.set(bucket, `${before} or ${name}`);
  };
  let last: { word: string; hash: number } | undefined;
  for (const word of splitWords(prompt)) {
    const hash = hashWord(word);
    add(hash, `“${word}”`);
    if (last !== undefined) add(Math.imul(last.hash, 31) ^ hash ^ 0x5bd1e995, `“${last.word} ${word}”`);
    last = { word, hash };
  }
  return names;
}

function hashWord(word: string): number {
  const hashes = new Int32Array(2);
  scanPrompt(word, hashes);
  return hashes[0]!;
}

/** As `scanPrompt` parts them: runs of letters and digits, each Han, kana or hangul character alone. */
function splitWords(prompt: string): string[] {
  return (
    prompt.match(/[\u2e80-\u9fff\uac00-\ud7af]|[A-Za-z0-9\u0080-\u2e7f\ua000-\uabff\ud7b0-\uffff]+/g) ?? []
  );
}
