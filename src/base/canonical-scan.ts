/** Tests whether JSON text is canonical by reading the text alone, much faster than writing the value again.
 *  In: well-formed text that JSON.parse accepts. Out: true, false, or undefined if a key holds an escape. */

/** True if keys ascend, numbers and strings are in their shortest form, and no space separates tokens. */
export function scanCanonical(text: string, maxDepth: number): boolean | undefined {
  // Offset of the last key of each open object; 0 before its first key.
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
      // true, false or null: JSON.parse has already checked the rest of the word.
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

/** Offset of the closing quote of the string that opens at `start`, or -1 if its escapes are not the canonical ones. */
function endOfEscaped(text: string, start: number): number {
  let end = start + 1;
  for (let code = text.charCodeAt(end); code !== QUOTE; code = text.charCodeAt(end))
    end += code === BACKSLASH ? 2 : 1;
  const piece = text.slice(start, end + 1);
  const value = JSON.parse(piece) as string;
  return value.isWellFormed() && JSON.stringify(value) === piece ? end : -1;
}

/** Compares two keys in place, by UTF-16 code units as RFC 8785 does. Each key ends at its closing quote. */
function ascends(text: string, before: number, after: number): boolean {
  for (let i = 0; ; i++) {
    const [x, y] = [text.charCodeAt(before + i), text.charCodeAt(after + i)];
    if (x !== y) return y !== QUOTE && (x === QUOTE || x < y);
    if (x === QUOTE) return false;
  }
}

/** Offset after the number at `start`. Returns -1 if the number is not in canonical form, or if a space is there. */
function endOfNumber(text: string, start: number): number {
  let at = start;
  let code = text.charCodeAt(at);
  while (code >= ZERO && code <= NINE) code = text.charCodeAt(++at);
  // Almost every number is a short integer, and JSON.parse has refused leading zeros.
  if (at > start && at - start <= 15 && !isNumeric(code)) return at;
  while (isNumeric(code)) code = text.charCodeAt(++at);
  const digits = text.slice(start, at);
  return digits !== "" && String(Number(digits)) === digits ? at : -1;
}

/** True for a character of a JSON number: a digit, or one of `. e E + -`. */
function isNumeric(code: number): boolean {
  return (
    (code >= ZERO && code <= NINE) || code === 46 || code === 101 || code === 69 || code === 43 || code === 45
  );
}
