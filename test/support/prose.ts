/** Finds sentences in our texts, and faults in the sentences.
 *  In: Markdown, help texts, TypeScript sources. Out: sentences with the line they begin on, and what is wrong with one. */

export interface Sentence {
  file: string;
  line: number;
  text: string;
}

export const LONG_SENTENCE_WORDS = 30;

/** Words that readers stumble over, each with the plain one. */
const BANNED: [RegExp, string][] = [
  [/\blet(s|ting)? (\w+ )?through\b/i, "pass, accept"],
  [/\bdear(er|est|ly)?\b/i, "expensive"],
  [/\baloud\b/i, "print, report"],
  [/\brivals?\b/i, "baseline"],
  [/\bat (its|their|your) word\b/i, "unchecked"],
  [/\bthe other of the two\b/i, "name it"],
  [/\bnever parted\b/i, "stay in the same split"],
  [/\b(who|what|which)ever\b/i, "name the subject"],
  [/\b(nobody|no one)\b/i, "name the subject, or use the passive"],
  [/\bonce more\b/i, "again"],
  [/\bmend(s|ed|ing)?\b/i, "fix, repair"],
  [/\b(to be had|of old|by and by)\b/i, "a common word"],
];

const RIDDLE_SUBJECT =
  /^(What|Who|Whoever|Nobody|One that|One who|None of|Of which|That which|Those who|Whether)\b/;

/** Faults of a sentence; empty if it has none. */
export function wordFaults(text: string): string[] {
  const faults = BANNED.flatMap(([word, instead]) => {
    const found = word.exec(text);
    return found ? [`"${found[0]}": ${instead}`] : [];
  });
  const subject = RIDDLE_SUBJECT.exec(text);
  if (subject && !text.endsWith("?") && wordCount(text) > 4)
    faults.push(`begins with "${subject[0]}": name the subject`);
  return faults;
}

export function wordCount(text: string): number {
  return text.split(/\s+/).filter((word) => /[\p{L}\p{N}]/u.test(word)).length;
}

/** Sentences of a Markdown page: prose, list items and table cells; no code blocks. Inline code counts as one word. */
export function markdownSentences(file: string, page: string): Sentence[] {
  const sentences: Sentence[] = [];
  let block: string[] = [];
  let start = 0;
  let fenced = false;
  const flush = () => {
    sentences.push(...split(block.join(" ")).map((text) => ({ file, line: start, text })));
    block = [];
  };
  const lines = page.split("\n");
  for (const [at, line] of lines.entries()) {
    if (/^\s*```/.test(line)) {
      flush();
      fenced = !fenced;
      continue;
    }
    if (fenced) continue;
    if (/^\s*\|/.test(line)) {
      flush();
      start = at + 1;
      for (const cell of line.split("|")) {
        block = [cell];
        flush();
      }
      continue;
    }
    if (/^\s*$/.test(line)) {
      flush();
      continue;
    }
    if (/^\s*([-*]|\d+\.|#+|>)\s/.test(line)) flush();
    if (block.length === 0) start = at + 1;
    block.push(line.replace(/^\s*([-*]|\d+\.|#+|>)\s+/, ""));
  }
  flush();
  return sentences;
}

/** Sentences of a help text: usage lines and examples are left out, each option's description is one block. */
export function helpSentences(file: string, help: string): Sentence[] {
  const sentences: Sentence[] = [];
  let block: string[] = [];
  let start = 0;
  const flush = () => {
    sentences.push(...split(block.join(" ")).map((text) => ({ file, line: start, text })));
    block = [];
  };
  for (const [at, line] of help.split("\n").entries()) {
    if (/^(Usage:|\s*[$#] |\s*rollbook |\S.*:$)/.test(line) || line.trim() === "") {
      flush();
      continue;
    }
    const option = /^ {2}\S.*? {2,}(\S.*)$/.exec(line);
    if (option) flush();
    if (block.length === 0) start = at + 1;
    block.push(option?.[1] ?? line.trim());
  }
  flush();
  return sentences;
}

/** Sentences in string and template literals of a TypeScript source: errors, help and what views print. */
export function sourceSentences(file: string, source: string): Sentence[] {
  const sentences: Sentence[] = [];
  for (const { line, text } of literals(source)) {
    if (
      wordCount(text) < 4 ||
      /^(SELECT|INSERT|CREATE|UPDATE|DELETE|PRAGMA|WITH|BEGIN|ALTER|DROP)\b/.test(text.trim())
    )
      continue;
    sentences.push(...split(text).map((sentence) => ({ file, line, text: sentence })));
  }
  return sentences;
}

/** Sentences in the comments of a source. Lines of `//` that follow each other are one text, as is a whole block comment. */
export function commentSentences(file: string, source: string): Sentence[] {
  const sentences: Sentence[] = [];
  let joined: { line: number; text: string; end: number } | undefined;
  const flush = () => {
    if (joined !== undefined)
      sentences.push(...split(joined.text).map((text) => ({ file, line: joined!.line, text })));
    joined = undefined;
  };
  for (const { line, index, token } of tokens(source)) {
    if (!/^\/[/*]/.test(token)) continue;
    const text = token.replace(/^\/\/|^\/\*+|\*\/$/g, "").replace(/^\s*\*\s?/gm, "");
    const follows =
      joined !== undefined && token.startsWith("//") && /^\s*$/.test(source.slice(joined.end, index));
    if (!follows) flush();
    joined = { line: joined?.line ?? line, text: `${joined?.text ?? ""} ${text}`, end: index + token.length };
  }
  flush();
  return sentences;
}

function split(block: string): string[] {
  return block
    .replace(/`[^`]*`/g, "x")
    .replace(/!?\[([^\]]*)\]\([^)]*\)/g, "$1")
    .replace(/<[^>]+>/g, "")
    .replace(/[*_]{1,2}(?=\S)|(?<=\S)[*_]{1,2}/g, "")
    .split(/(?<=[.?!:;])\s+(?=["'(]?[\p{Lu}\p{N}x])|(?<=[;:])\s+/u)
    .map((text) => text.replace(/\s+/g, " ").trim())
    .filter((text) => text !== "");
}

/** Comments, literals and regular expressions of a source, with the line and the index that each begins at. */
function* tokens(source: string): Generator<{ line: number; index: number; token: string }> {
  const pattern =
    /\/\/[^\n]*|\/\*[\s\S]*?\*\/|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\.)*`|\/(?![*/])(?:[^/\\\n[]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/[dgimsuvy]*(?=[\s.,;)\]])/g;
  let line = 1;
  let at = 0;
  for (const match of source.matchAll(pattern)) {
    line += source.slice(at, match.index).split("\n").length - 1;
    at = match.index;
    yield { line, index: at, token: match[0] };
  }
}

/** Literals joined by + are one text, as a person reads it; a hole of a template is one word. */
function* literals(source: string): Generator<{ line: number; text: string }> {
  let joined: { line: number; text: string; end: number } | undefined;
  for (const { line, index, token } of tokens(source)) {
    if (token.startsWith("/")) continue;
    const text = token
      .slice(1, -1)
      .replace(/\$\{[^}]*\}/g, "x")
      .replace(/\\n/g, " ")
      .replace(/\\(.)/g, "$1");
    const between = joined ? source.slice(joined.end, index) : "";
    const end = index + token.length;
    if (joined && /^\s*\+\s*$/.test(between)) joined = { ...joined, text: joined.text + text, end };
    else {
      if (joined) yield joined;
      joined = { line, text, end };
    }
  }
  if (joined) yield joined;
}
