/** Changes some top-level fields in the text of a JSON object. All other bytes stay: numbers past 2^53, key order,
 *  spaces. In: text, or bytes, that JSON.parse accepts as an object. Out: the same kind. */

/** The request body with another model; same result as `spliceFields`. Most bodies contain the model once, so the
 *  bytes around it are copied. `text` is the body as text, `asked` the model in it, `name` the new model as JSON.
 *  The search is in the text, because a search in a Buffer takes longer. */
export function renameModel(
  body: Buffer,
  { text, asked, name }: { text: string; asked: string; name: Buffer },
): Buffer {
  const found = modelPlace(text, asked);
  if (found < 0) return Buffer.from(spliceFields(text, { model: JSON.parse(name.toString()) as string }));
  const isAscii = text.length === body.length;
  const place = isAscii ? found : Buffer.byteLength(text.slice(0, found));
  const end = place + (isAscii ? asked.length : Buffer.byteLength(asked)) + 2;
  const longer = name.length - (end - place);
  const renamed = Buffer.allocUnsafe(body.length + longer);
  if (longer >= 0 && place <= FEW_BYTES) {
    // Copies the whole body once and its beginning again: a view of the rest costs more than copying the rest.
    renamed.set(body, longer);
    for (let i = 0; i < place; i++) renamed[i] = body[i]!;
  } else {
    renamed.set(body.subarray(0, place), 0);
    renamed.set(body.subarray(end), place + name.length);
  }
  for (let i = 0; i < name.length; i++) renamed[place + i] = name[i]!;
  return renamed;
}

/** Below this size a loop is faster than a call into the engine. */
const FEW_BYTES = 48;

/** Start of the model's value, or -1 if the fast path cannot tell. A body without `\\u` can spell the field name in
 *  one way only, so a single occurrence is the field. */
function modelPlace(text: string, asked: string): number {
  // Most clients send the model first, which saves the search.
  const at = text.startsWith(MODEL, 1) ? 1 : text.indexOf(MODEL);
  if (at < 0 || hasModel(text, at + MODEL.length) || text.includes(ESCAPE)) return -1;
  let place = at + MODEL.length;
  while (text.charCodeAt(place) === COLON || isSpace(text.charCodeAt(place))) place++;
  // An escaped name has more characters than the name, so the closing quote is not at this place.
  const isAsked =
    text.charCodeAt(place) === QUOTE &&
    text.startsWith(asked, place + 1) &&
    text.charCodeAt(place + 1 + asked.length) === QUOTE;
  return isAsked ? place : -1;
}

/** Quotes are frequent in JSON, so a search for the letters is faster. The quote is checked only after a match. */
function hasModel(text: string, from: number): boolean {
  return text.includes(MODEL_END, from) && text.includes(MODEL, from);
}

const MODEL = '"model"';
const MODEL_END = 'model"';
const ESCAPE = "\\u";

/** Sets each field, and removes fields whose new value is undefined. A duplicate field is set twice, because readers
 *  differ on which of the two counts. */
export function spliceFields(text: string, fields: Readonly<Record<string, unknown>>): string {
  const missing = new Set(Object.keys(fields).filter((name) => fields[name] !== undefined));
  let out = "";
  let copied = 0;
  let at = skip(text, text.indexOf("{") + 1, COMMA);
  while (text.charCodeAt(at) === QUOTE) {
    const nameEnd = endOfString(text, at);
    const spelled = text.slice(at + 1, nameEnd - 1);
    const name = spelled.includes("\\") ? (JSON.parse(`"${spelled}"`) as string) : spelled;
    const start = skip(text, nameEnd, COLON);
    const end = endOfValue(text, start);
    const next = skip(text, end, COMMA);
    if (Object.hasOwn(fields, name)) {
      missing.delete(name);
      const value = JSON.stringify(fields[name]) as string | undefined;
      out += text.slice(copied, value === undefined ? at : start) + (value ?? "");
      copied = value === undefined ? next : end;
      if (value === undefined && text.charCodeAt(next) !== QUOTE) out = out.replace(/,\s*$/, "");
    }
    at = next;
  }
  if (missing.size === 0) return out + text.slice(copied);
  const close = text.lastIndexOf("}");
  const added = [...missing]
    .map((name) => `${JSON.stringify(name)}:${JSON.stringify(fields[name])}`)
    .join(",");
  const kept = out + text.slice(copied, close);
  const isEmpty = /^\s*\{\s*$/.test(kept);
  return `${kept}${isEmpty ? "" : ","}${added}${text.slice(close)}`;
}

const [QUOTE, COMMA, COLON, BACKSLASH] = [0x22, 0x2c, 0x3a, 0x5c];
const [OPEN_BRACKET, CLOSE_BRACKET, OPEN_BRACE, CLOSE_BRACE] = [0x5b, 0x5d, 0x7b, 0x7d];

/** Skips white space and this mark. */
function skip(text: string, from: number, mark: number): number {
  let at = from;
  for (; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (unit !== mark && !isSpace(unit)) break;
  }
  return at;
}

function isSpace(unit: number): boolean {
  return unit === 0x20 || unit === 0x0a || unit === 0x0d || unit === 0x09;
}

/** Jumps from quote to quote: prompts are long, and most characters are not quotes. */
function endOfString(text: string, start: number): number {
  let quote = text.indexOf('"', start + 1);
  while (quote >= 0 && isEscaped(text, quote)) quote = text.indexOf('"', quote + 1);
  return quote < 0 ? text.length : quote + 1;
}

/** True after an odd number of backslashes. The opening quote of the string ends their run. */
function isEscaped(text: string, quote: number): boolean {
  let at = quote;
  while (text.charCodeAt(at - 1) === BACKSLASH) at--;
  return (quote - at) % 2 === 1;
}

function endOfValue(text: string, start: number): number {
  let depth = 0;
  for (let at = start; at < text.length; at++) {
    switch (text.charCodeAt(at)) {
      case QUOTE:
        at = endOfString(text, at) - 1;
        if (depth === 0) return at + 1;
        break;
      case OPEN_BRACE:
      case OPEN_BRACKET:
        depth++;
        break;
      case CLOSE_BRACE:
      case CLOSE_BRACKET:
        if (depth === 0) return trimEnd(text, at);
        if (--depth === 0) return at + 1;
        break;
      case COMMA:
        if (depth === 0) return trimEnd(text, at);
    }
  }
  return text.length;
}

function trimEnd(text: string, end: number): number {
  let at = end;
  while (/\s/.test(text[at - 1]!)) at--;
  return at;
}
