/** One pass over a prompt: counts its kinds of characters and hashes its words. No regular expressions, no strings made.
 *  A word is a run of letters and digits, ASCII lower-cased; each Han, kana or hangul character is a word of its own. */

export interface PromptCounts {
  chars: number;
  words: number;
  lines: number;
  letters: number;
  digits: number;
  capitals: number;
  punctuation: number;
  code: number;
  math: number;
  questions: number;
  latin: number;
  greek: number;
  han: number;
  other: number;
}

const SEED = 0x811c9dc5;
const PRIME = 0x01000193;

const LETTER = 1;
const CAPITAL = 2;
const DIGIT = 3;
const SPACE = 4;
const LINE = 5;
const CODE = 6;
const MATH = 7;
const QUESTION = 8;
const OTHER = 9;

/** The class of each ASCII character. */
const CLASSES = new Uint8Array(128).fill(OTHER);
for (let unit = 0; unit <= 32; unit++) CLASSES[unit] = SPACE;
CLASSES[10] = LINE;
for (let unit = 97; unit <= 122; unit++) CLASSES[unit] = LETTER;
for (let unit = 65; unit <= 90; unit++) CLASSES[unit] = CAPITAL;
for (let unit = 48; unit <= 57; unit++) CLASSES[unit] = DIGIT;
for (const mark of "{}[]();`_#|&@~") CLASSES[mark.charCodeAt(0)] = CODE;
for (const mark of "+-*/^=%<>$\\") CLASSES[mark.charCodeAt(0)] = MATH;
CLASSES[63] = QUESTION;

/** Writes the hash of each word into `hashes` (as many as fit; the rest is counted only) and returns the counts. */
export function scanPrompt(text: string, hashes: Int32Array): PromptCounts {
  const counts = zeroCounts(text.length);
  let hash = SEED;
  let open = false;
  const half = hashes.length >> 1;
  // Past the first half, the second half is a ring: it ends up with the last words of the prompt.
  const place = (word: number): number =>
    word < half ? word : half + ((word - half) % (hashes.length - half));
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    const kind = unit < 128 ? CLASSES[unit]! : LETTER;
    if (kind <= DIGIT) {
      const alone = unit >= 0x2e80 && isHan(unit);
      if (open && alone) {
        hashes[place(counts.words++)] = hash;
        open = false;
      }
      hash = Math.imul((open ? hash : SEED) ^ (kind === CAPITAL ? unit + 32 : unit), PRIME);
      open = true;
      if (unit >= 128) countForeign(unit, counts);
      else if (kind === DIGIT) counts.digits++;
      else if (kind === CAPITAL) counts.capitals++;
      counts.letters++;
      if (!alone) continue;
    }
    if (open) {
      hashes[place(counts.words++)] = hash;
      open = false;
    }
    if (kind > DIGIT) countMark(kind, counts);
  }
  if (open) hashes[place(counts.words++)] = hash;
  return counts;
}

/** Spreads the bits of a word hash, or of a pair, over all 32 (the finaliser of MurmurHash3). */
export function mix(hash: number): number {
  let h = hash ^ (hash >>> 16);
  h = Math.imul(h, 0x85ebca6b);
  h ^= h >>> 13;
  h = Math.imul(h, 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}

export function hashText(text: string): number {
  let hash = SEED;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), PRIME);
  return mix(hash);
}

function countMark(kind: number, counts: PromptCounts): void {
  if (kind === SPACE) return;
  if (kind === LINE) counts.lines++;
  else if (kind === CODE) counts.code++;
  else if (kind === MATH) counts.math++;
  else if (kind === QUESTION) counts.questions++;
  else counts.punctuation++;
}

function countForeign(unit: number, counts: PromptCounts): void {
  if (unit < 0x250) counts.latin++;
  else if (unit >= 0x370 && unit < 0x530) counts.greek++;
  else if (isHan(unit)) counts.han++;
  else counts.other++;
}

function isHan(unit: number): boolean {
  return (unit >= 0x2e80 && unit < 0xa000) || (unit >= 0xac00 && unit < 0xd7b0);
}

function zeroCounts(chars: number): PromptCounts {
  return {
    chars,
    words: 0,
    lines: 0,
    letters: 0,
    digits: 0,
    capitals: 0,
    punctuation: 0,
    code: 0,
    math: 0,
    questions: 0,
    latin: 0,
    greek: 0,
    han: 0,
    other: 0,
  };
}
