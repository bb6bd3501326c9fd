/** Changes some top-level fields of a JSON object's text and leaves every other byte as it was: numbers past 2^53,
 *  key order and spaces pass untouched. In: text that JSON.parse accepts as an object. Out: text. */

/** Sets each field; one that is there twice is set twice, because readers differ on which counts. */
export function spliceFields(text: string, fields: Readonly<Record<string, unknown>>): string {
  const missing = new Map(Object.entries(fields).map(([name, value]) => [name, JSON.stringify(value)]));
  const wanted = new Map(missing);
  let out = "";
  let copied = 0;
  for (const { name, start, end } of topLevelFields(text)) {
    const value = wanted.get(name);
    if (value === undefined) continue;
    missing.delete(name);
    out += text.slice(copied, start) + value;
    copied = end;
  }
  if (missing.size === 0) return out + text.slice(copied);
  const close = text.lastIndexOf("}");
  const added = [...missing].map(([name, value]) => `${JSON.stringify(name)}:${value}`).join(",");
  const isEmpty = /^\s*\{\s*$/.test(text.slice(0, close));
  return `${out}${text.slice(copied, close)}${isEmpty ? "" : ","}${added}${text.slice(close)}`;
}

interface JsonField {
  readonly name: string;
  /** Where its value begins and ends. */
  readonly start: number;
  readonly end: number;
}

function* topLevelFields(text: string): IterableIterator<JsonField> {
  let at = text.indexOf("{") + 1;
  for (;;) {
    at = skip(text, at, /[\s,]/);
    if (text[at] !== '"') return;
    const nameEnd = endOfString(text, at);
    const name = JSON.parse(text.slice(at, nameEnd)) as string;
    const start = skip(text, nameEnd, /[\s:]/);
    const end = endOfValue(text, start);
    yield { name, start, end };
    at = end;
  }
}

function skip(text: string, from: number, what: RegExp): number {
  let at = from;
  while (at < text.length && what.test(text[at]!)) at++;
  return at;
}

function endOfString(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at++) {
    if (text[at] === "\\") at++;
    else if (text[at] === '"') return at + 1;
  }
  return text.length;
}

function endOfValue(text: string, start: number): number {
  let depth = 0;
  for (let at = start; at < text.length; at++) {
    const char = text[at]!;
    if (char === '"') {
      at = endOfString(text, at) - 1;
      if (depth === 0) return at + 1;
    } else if (char === "{" || char === "[") depth++;
    else if (char === "}" || char === "]") {
      if (depth === 0) return trimEnd(text, at);
      if (--depth === 0) return at + 1;
    } else if (char === "," && depth === 0) return trimEnd(text, at);
  }
  return text.length;
}

function trimEnd(text: string, end: number): number {
  let at = end;
  while (/\s/.test(text[at - 1]!)) at--;
  return at;
}
