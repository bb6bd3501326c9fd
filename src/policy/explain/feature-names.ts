/** Readable names of features. A hash bucket is named by the words of the prompt that fall into it.
 *  In: the way a model reads a question, a question. Out: names for every place of its vector. */
import type { DecisionContext } from "../decision.ts";
import { type FeatureLayout, PROMPT_FEATURES, type ValueSpec } from "../feature-spec.ts";
import { hashText, mix, scanPrompt, splitWords } from "../scan-prompt.ts";
import { denseSizeOf, embeddingAt, PROMPT_MEASURES } from "../value/index.ts";

/** Names of a place of the vector. If there are several, the place counts for each in equal shares. */
export type NameFeature = (index: number) => readonly string[];

/** Name of a bucket whose word training saw but this prompt lacks. The bucket does not identify the word. */
const ABSENT = ["common words that are not in this prompt"];

/** Chars, words and lines rise and fall together, so they are one part. */
const LENGTHS: readonly string[] = ["chars", "words", "lines"];

function measureName(index: number): string[] {
  const name = PROMPT_FEATURES[index]!;
  return [LENGTHS.includes(name) ? "length of the prompt" : `${name} of the prompt`];
}

/** `isCrowded`: most buckets hold several words, so a part cannot be attributed to one word. */
export function firstNames(
  layout: FeatureLayout,
  { context, isCrowded }: { context: DecisionContext; isCrowded: boolean },
): NameFeature {
  const { spec, fieldAt, denseSize } = layout;
  const words = wordNames(context.prompt, { buckets: spec.wordBuckets, isCrowded });
  return (index) => {
    if (index < PROMPT_FEATURES.length) return measureName(index);
    if (index >= denseSize) return words.get(index - denseSize) ?? ABSENT;
    const field = fieldAt.findLastIndex((at) => at <= index);
    const { name, kind } = spec.fields[field]!;
    return [kind === "number" && index === fieldAt[field]! + 1 ? `field ${name} is given` : `field ${name}`];
  };
}

/** `ids`: the hashed ids that are columns. */
export function valueNames(spec: ValueSpec, ids: Uint32Array, context: DecisionContext): NameFeature {
  const unicode = spec.letters === "unicode";
  const terms = wordNames(context.prompt, { buckets: spec.wordBuckets, isCrowded: false, unicode });
  for (const { name, kind } of spec.fields) {
    const value = context.fields[name];
    if (kind !== "category" || value === undefined) continue;
    const hash = hashText(String(value)) ^ hashText(`field ${name}`);
    terms.set(mix(hash) & (spec.wordBuckets - 1), [`field ${name} is ${value}`]);
  }
  const numbers = spec.fields.filter(({ kind }) => kind === "number");
  const [vector, dense] = [embeddingAt(spec), denseSizeOf(spec)];
  return (index) => {
    if (index < PROMPT_MEASURES) return measureName(index + 1);
    if (index >= dense) return terms.get(ids[index - dense]!) ?? ABSENT;
    if (index >= vector) return ["the meaning of the prompt"];
    const { name } = numbers[(index - PROMPT_MEASURES) >> 1]!;
    return [(index - PROMPT_MEASURES) % 2 === 0 ? `field ${name}` : `field ${name} is given`];
  };
}

export function isWord(name: string): boolean {
  return name.startsWith("“");
}

/** Maximal number of words in the name of a bucket. */
const LISTED = 3;

/** The names of each bucket that the prompt reaches. Hashes words the same way as the reader. A pair of words counts
 *  half for each word. A bucket of several terms has its own name, because its part belongs to all of them. */
function wordNames(
  prompt: string,
  { buckets, isCrowded, unicode = false }: { buckets: number; isCrowded: boolean; unicode?: boolean },
): Map<number, readonly string[]> {
  const terms = new Map<number, Map<number, readonly string[]>>();
  const add = (hash: number, words: readonly string[]) => {
    const bucket = mix(hash) & (buckets - 1);
    const known = terms.get(bucket) ?? new Map<number, readonly string[]>();
    terms.set(bucket, known.set(hash, words));
  };
  // The first spelling names all spellings with the same hash.
  const spelled = new Map<number, string>();
  let last: { word: string; hash: number } | undefined;
  for (const text of splitWords(prompt, { unicode })) {
    const hash = hashWord(text, unicode);
    const word = spelled.get(hash) ?? `“${text}”`;
    spelled.set(hash, word);
    add(hash, [word]);
    if (last !== undefined) add(Math.imul(last.hash, 31) ^ hash ^ 0x5bd1e995, [last.word, word]);
    last = { word, hash };
  }
  return new Map(
    [...terms].map(([bucket, each]) => {
      const [first = []] = each.values();
      return [bucket, each.size === 1 && !isCrowded ? first : [bucketName([...each.values()])]];
    }),
  );
}

/** Names a bucket by its words, or by its pairs if it has no word. */
function bucketName(terms: readonly (readonly string[])[]): string {
  const words = terms.filter(({ length }) => length === 1);
  const all = (words.length > 0 ? words : terms).map((each) => each.join(" ").replaceAll("” “", " "));
  const more = all.length - LISTED;
  return `the hash bucket of ${all.slice(0, LISTED).join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}

function hashWord(word: string, unicode: boolean): number {
  const hashes = new Int32Array(2);
  scanPrompt(word, hashes, { unicode });
  return hashes[0]!;
}
