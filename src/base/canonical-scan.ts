/** Looks at JSON text alone and says whether it is canonical, in a fraction of the time of writing it anew.
 *  In: well-formed text that JSON.parse accepts. Out: yes, no, or undefined where a key holds an escape. */

/** Whether keys ascend, numbers and strings are in their shortest form and no space stands between tokens. */
export function scanCanonical(text: string, maxDepth: number): boolean | undefined {
  // Where the last key of each open object begins; 0 before the first one.
  const keys = KEYS.length >= maxDepth ? KEYS : new Int32Array(maxDepth);
  let depth = -1;
  let at = 0;
  let escapeAt = nextEscape(text, 0);
  while (at < text.length) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) {
      let end = text.indexOf('"', at + 1);
      const escaped = escapeAt < end;
      if (escaped) {
        end = endOfEscaped(text, at);
        if (end < 0) return false;
        escapeAt = nextEscape(text, end);
      }
      const isKey = text.charCodeAt(end + 1) === COLON;
      if (isKey) {
        if (escaped) return undefined;
        const previous = keys[depth]!;
        if (previous !== 0 && !ascends(text, previous, at + 1)) return false;
        keys[depth] = at + 1;
      }
      at = end + (isKey ? 2 : 1);
    } else if (code === OPEN_BRACE || code === OPEN_BRACKET) {
      if (++depth >= maxDepth) return false;
      keys[depth] = 0;
      at++;
    } else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) {
      depth--;
      at++;
    } else if (code === COMMA) {
      at++;
    } else if (code > NINE) {
      // true, false or null: JSON.parse has read the rest of the word.
      at += code === LETTER_F ? 5 : 4;
    } else {
      at = endOfNumber(text, at);
      if (at < 0) return false;
    }
  }
  return true;
}

const [QUOTE, COLON, COMMA, ZERO, NINE, BACKSLASH] = [34, 58, 44, 48, 57, 92] as const;
const [OPEN_BRACE, CLOSE_BRACE, OPEN_BRACKET, CLOSE_BRACKET, LETTER_F] = [123, 125, 91, 93, 102] as const;
const KEYS = new Int32Array(128);

function nextEscape(text: string, from: number): number {
  const at = text.indexOf("\\", from);
  return at < 0 ? Number.POSITIVE_INFINITY : at;
}

/** The closing quote of the string that opens at `start`, or -1 if it escapes more or less than it must. */
function endOfEscaped(text: string, start: number): number {
  let end = start + 1;
  for (let code = text.charCodeAt(end); code !== QUOTE; code = text.charCodeAt(end))
    end += code === BACKSLASH ? 2 : 1;
  const piece = text.slice(start, end + 1);
  const value = JSON.parse(piece) as string;
  return value.isWellFormed() && JSON.stringify(value) === piece ? end : -1;
}

/** Compares two keys in place, by UTF-16 code units as RFC 8785 does. A quote ends each of them. */
function ascends(text: string, before: number, after: number): boolean {
  for (let i = 0; ; i++) {
    const [x, y] = [text.charCodeAt(before + i), text.charCodeAt(after + i)];
    if (x !== y) return y !== QUOTE && (x === QUOTE || x < y);
    if (x === QUOTE) return false;
  }
}

/** The place after the number at `start`, or -1 if it is not written as canonical JSON writes it, or is a space. */
function endOfNumber(text: string, start: number): number {
  let at = start;
  let code = text.charCodeAt(at);
  while (code >= ZERO && code <= NINE) code = text.charCodeAt(++at);
  // Almost every number is a short whole one, and JSON.parse has refused leading zeros.
  if (at > start && at - start <= 15 && !isNumeric(code)) return at;
  while (isNumeric(code)) code = text.charCodeAt(++at);
  const digits = text.slice(start, at);
  return digits !== "" && String(Number(digits)) === digits ? at : -1;
}

/** What a number may be written with: a digit, or one of `. e E + -`. */
function isNumeric(code: number): boolean {
  return (
    (code >= ZERO && code <= NINE) || code === 46 || code === 101 || code === 69 || code === 43 || code === 45
  );
}
