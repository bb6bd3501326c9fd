/** One pass over a prompt: counts its kinds of characters and hashes its words. No regular expressions, no new strings.
 *  A word is a run of letters and digits, ASCII lower-cased. Each Han, kana or hangul character is a word.
 *  With `unicode`, letters of other alphabets are lower-cased too, and their punctuation ends a word. In scripts
 *  without spaces, each character is a word.
 *  The rules are written out, so a letter is the same in every version of Node. */

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

/** Signed, because products are signed. The hash then stays a 32-bit integer of the processor. */
const SEED = 0x811c9dc5 | 0;
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

/** For each ASCII letter and digit: its lower case (LOWERED), and all bits set (IN_WORD).
 *  0 for all other characters. */
const LOWERED = new Uint8Array(128);
const IN_WORD = new Int32Array(128);
for (let unit = 0; unit < 128; unit++) {
  if (CLASSES[unit]! > DIGIT) continue;
  LOWERED[unit] = CLASSES[unit] === CAPITAL ? unit + 32 : unit;
  IN_WORD[unit] = -1;
}

/** A piece of the prompt.
 *  Reading an array takes a third of the time of reading a string, which has several internal forms. */
const UNITS = new Uint16Array(4096);
const UNIT_BYTES = Buffer.from(UNITS.buffer);
/** Hashes of the words that ended in a piece, and of the word in progress.
 *  At most every second character ends a word. */
const ENDED = new Int32Array(UNITS.length / 2 + 2);
/** Counts of a piece are packed four to a number, each below FIELD.
 *  The number stays in a register; an array would not. */
const FIELD_BITS = 13;
const FIELD = 2 ** FIELD_BITS;
const SQUARE = FIELD ** 2;
/** The counts that each ASCII character adds: letters, digits, capitals, lines; code, math, questions, punctuation. */
const TO_WORDS = new Float64Array(128);
const TO_MARKS = new Float64Array(128);
for (let unit = 0; unit < 128; unit++) {
  const kind = CLASSES[unit]!;
  if (kind <= DIGIT) TO_WORDS[unit] = 1 + (kind === DIGIT ? FIELD : kind === CAPITAL ? SQUARE : 0);
  else if (kind === LINE) TO_WORDS[unit] = FIELD ** 3;
  else if (kind !== SPACE) TO_MARKS[unit] = FIELD ** [CODE, MATH, QUESTION, OTHER].indexOf(kind);
}

/** State of a scan. */
interface PromptScan {
  readonly counts: PromptCounts;
  readonly hashes: Int32Array;
  readonly unicode: boolean;
  /** Hash of the word in progress; used if `open`. */
  hash: number;
  open: boolean;
}

/** Writes word hashes into `hashes` and returns the counts. All words are counted. If there are more words than places,
 *  `hashes` holds the first and the last words of the prompt. */
export function scanPrompt(text: string, hashes: Int32Array, { unicode = false } = {}): PromptCounts {
  const scan: PromptScan = { counts: zeroCounts(text.length), hashes, unicode, hash: SEED, open: false };
  for (let from = 0; from < text.length; from += UNITS.length) {
    const length = Math.min(UNITS.length, text.length - from);
    UNIT_BYTES.write(length === text.length ? text : text.slice(from, from + length), "utf16le");
    for (let at = scanAscii(scan, length); at < length; at++) scanUnit(scan, UNITS[at]!);
  }
  if (scan.open) endWord(scan);
  return scan.counts;
}

/** Reads a piece up to the first character beyond ASCII and returns its place. The loop has no branch that depends on a
 *  character: the processor cannot predict the ends of words,
 *  and a wrong prediction costs more than four characters. */
function scanAscii(scan: PromptScan, length: number): number {
  const { counts } = scan;
  let words = 0;
  let inWords = 0;
  let inMarks = 0;
  let hash = scan.hash;
  let before = scan.open ? -1 : 0;
  // A word of the previous piece may end at the first character of this piece.
  ENDED[0] = hash;
  let i = 0;
  for (; i < length; i++) {
    const unit = UNITS[i]!;
    if (unit >= 128) break;
    const now = IN_WORD[unit]!;
    inWords += TO_WORDS[unit]!;
    inMarks += TO_MARKS[unit]!;
    words += before & ~now & 1;
    // Outside of words this value is not a hash, and the next word overwrites it.
    hash = Math.imul((hash & before) ^ ((SEED & ~before) ^ LOWERED[unit]!), PRIME);
    ENDED[words] = hash;
    before = now;
  }
  for (let word = 0; word < words; word++) keepWord(scan, ENDED[word]!);
  scan.hash = hash;
  scan.open = before !== 0;
  const linesAndCapitals = Math.floor(inWords / SQUARE);
  const digitsAndLetters = inWords - linesAndCapitals * SQUARE;
  counts.letters += digitsAndLetters & (FIELD - 1);
  counts.digits += digitsAndLetters >> FIELD_BITS;
  counts.capitals += linesAndCapitals & (FIELD - 1);
  counts.lines += linesAndCapitals >> FIELD_BITS;
  const punctuationAndQuestions = Math.floor(inMarks / SQUARE);
  const mathAndCode = inMarks - punctuationAndQuestions * SQUARE;
  counts.code += mathAndCode & (FIELD - 1);
  counts.math += mathAndCode >> FIELD_BITS;
  counts.questions += punctuationAndQuestions & (FIELD - 1);
  counts.punctuation += punctuationAndQuestions >> FIELD_BITS;
  return i;
}

/** Reads one character of any kind. */
function scanUnit(scan: PromptScan, given: number): void {
  const { counts, unicode } = scan;
  const unit = unicode && given >= 128 ? foldForeign(given) : given;
  const kind = unit >= 128 ? LETTER : unit === given || unit > 0 ? CLASSES[unit]! : OTHER;
  if (kind > DIGIT) {
    if (scan.open) endWord(scan);
    countMark(kind, counts);
    return;
  }
  const alone = unit >= 0x2e80 ? isHan(unit) : unicode && isSpaceless(unit);
  if (scan.open && alone) endWord(scan);
  scan.hash = Math.imul((scan.open ? scan.hash : SEED) ^ (kind === CAPITAL ? unit + 32 : unit), PRIME);
  scan.open = true;
  if (unit >= 128) countForeign(unit, counts);
  else if (kind === DIGIT) counts.digits++;
  else if (kind === CAPITAL) counts.capitals++;
  if (unit !== given) counts.capitals++;
  counts.letters++;
  if (alone) endWord(scan);
}

function endWord(scan: PromptScan): void {
  keepWord(scan, scan.hash);
  scan.open = false;
}

/** Keeps the first half of the words, then writes the second half as a ring.
 *  The ring ends with the prompt's last words. */
function keepWord({ counts, hashes }: PromptScan, hash: number): void {
  const half = hashes.length >> 1;
  const word = counts.words++;
  hashes[word < half ? word : half + ((word - half) % (hashes.length - half))] = hash;
}

/** The words of a prompt, split the same way as in `scanPrompt`. */
export function splitWords(text: string, { unicode = false } = {}): string[] {
  const words: string[] = [];
  let word = "";
  const close = () => {
    if (word !== "") words.push(word);
    word = "";
  };
  for (let i = 0; i < text.length; i++) {
    const given = text.charCodeAt(i);
    const unit = unicode && given >= 128 ? foldForeign(given) : given;
    const isLetter = unit >= 128 || (unit > 0 && CLASSES[unit]! <= DIGIT);
    const alone = unit >= 0x2e80 ? isHan(unit) : unicode && isSpaceless(unit);
    if (!isLetter || alone) close();
    if (isLetter) word += text[i];
    if (alone) close();
  }
  close();
  return words;
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

/** Thai, Lao, Burmese and Khmer. */
function isSpaceless(unit: number): boolean {
  return (
    (unit >= 0xe00 && unit < 0xf00) || (unit >= 0x1000 && unit < 0x10a0) || (unit >= 0x1780 && unit < 0x1800)
  );
}

/** A character beyond ASCII in lower case; 0 for a space or a mark. */
function foldForeign(unit: number): number {
  if (unit < 0x250) return foldLatin(unit);
  if (unit >= 0x370 && unit < 0x590) return foldGreek(unit);
  if (unit >= 0x1e00 && unit < 0x1f00)
    return unit % 2 === 0 && (unit < 0x1e96 || unit > 0x1e9f) ? unit + 1 : unit;
  if (unit >= 0xff00 && unit < 0xff66) return foldWide(unit);
  return isForeignMark(unit) ? 0 : unit;
}

function foldLatin(unit: number): number {
  if (unit < 0xc0) return unit === 0xaa || unit === 0xb5 || unit === 0xba ? unit : 0;
  if (unit === 0xd7 || unit === 0xf7) return 0;
  if (unit < 0xdf) return unit + 32;
  // Ơ and Ư, two vowels of Vietnamese.
  if (unit === 0x1a0 || unit === 0x1af) return unit + 1;
  if (unit < 0x100 || unit >= 0x180 || unit === 0x138 || unit === 0x149 || unit === 0x17f) return unit;
  if (unit === 0x178) return 0xff;
  const odd = (unit >= 0x139 && unit <= 0x148) || unit >= 0x179;
  return (unit % 2 === 1) === odd ? unit + 1 : unit;
}

/** Greek, Cyrillic and Armenian. */
function foldGreek(unit: number): number {
  if (unit === 0x37e || unit === 0x387) return 0;
  if (unit === 0x386) return 0x3ac;
  if (unit >= 0x388 && unit <= 0x38a) return unit + 37;
  if (unit === 0x38c) return 0x3cc;
  if (unit === 0x38e || unit === 0x38f) return unit + 63;
  if (unit >= 0x391 && unit <= 0x3ab) return unit + 32;
  // The sigma at the end of a word.
  if (unit === 0x3c2) return 0x3c3;
  if (unit >= 0x400 && unit < 0x410) return unit + 80;
  if (unit >= 0x410 && unit < 0x430) return unit + 32;
  if ((unit >= 0x460 && unit < 0x482) || (unit >= 0x48a && unit < 0x4c0) || (unit >= 0x4d0 && unit < 0x530))
    return unit | 1;
  if (unit >= 0x531 && unit <= 0x556) return unit + 48;
  return (unit >= 0x55a && unit <= 0x55f) || unit === 0x589 || unit === 0x58a ? 0 : unit;
}

/** Maps full-width letters and digits to those of ASCII. */
function foldWide(unit: number): number {
  const narrow = unit - 0xfee0;
  const kind = narrow < 128 ? CLASSES[narrow]! : OTHER;
  return kind === CAPITAL ? narrow + 32 : kind === LETTER || kind === DIGIT ? narrow : 0;
}

/** Marks of Hebrew, Arabic and Indic scripts, general punctuation without joiners, symbols,
 *  marks of Chinese and Japanese. */
function isForeignMark(unit: number): boolean {
  if (unit < 0x700)
    return (
      [0x5be, 0x5c0, 0x5c3, 0x5f3, 0x5f4, 0x60c, 0x61b, 0x61f, 0x6d4].includes(unit) ||
      (unit >= 0x66a && unit <= 0x66d)
    );
  if (unit < 0x2000) return unit === 0x964 || unit === 0x965 || unit === 0x970;
  if (unit < 0x2070) return unit !== 0x200c && unit !== 0x200d;
  if (unit < 0x2c00) return (unit >= 0x20a0 && unit < 0x20d0) || unit >= 0x2190;
  return unit >= 0x3000 && unit < 0x3040 && !(unit >= 0x3005 && unit <= 0x3007);
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
