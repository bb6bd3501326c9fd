/** Reads YAML that a person wrote: a configuration, a table, a declaration. In: text. Out: plain values, or the
 *  caller's error. Size, depth, entries and aliases are bounded, so that no file can exhaust memory or time.
 *  Reads no file. */
import { isAlias, isMap, isScalar, isSeq, type ParsedNode, parseDocument } from "yaml";

const MAX_CHARS = 512 * 1024;
const MAX_DEPTH = 32;
/** Keys and items of the whole file. */
const MAX_ENTRIES = 50_000;
const MAX_ALIASES = 100;

/** `bad` makes the error from a description of the problem. An empty text is null. */
export function readYaml(text: string, bad: (what: string) => Error): unknown {
  if (text.length > MAX_CHARS)
    throw bad(`the file has ${text.length} characters; at most ${MAX_CHARS} are read`);
  if (nestsTooDeep(text)) throw bad(`it is nested deeper than ${MAX_DEPTH} levels`);
  // The parser would compare every key with every other key. `problemIn` finds duplicate keys in one pass.
  const document = parseDocument(text, { uniqueKeys: false, strict: true });
  const [fault] = [...document.errors, ...document.warnings];
  const problem =
    fault === undefined
      ? problemIn(document.contents)
      : `it is not YAML: ${fault.message.split("\n")[0]!.replace(/:$/, "")}`;
  if (problem !== undefined) throw bad(problem);
  try {
    return document.toJS({ maxAliasCount: MAX_ALIASES });
  } catch (error) {
    // toJS has only one error: aliases that multiply.
    throw bad(error instanceof Error ? error.message : String(error));
  }
}

/** The parser recurses at every level, so a text that is far too deep is refused before parsing. Counts brackets,
 *  indents and dashes: each opens at most one level. Those inside strings count too, hence the generous factor. */
function nestsTooDeep(text: string): boolean {
  let brackets = 0;
  for (const line of text.split("\n")) {
    const markers = /^(?:[ \t]|[-?:](?=[ \t]))*/.exec(line)![0].length;
    if (markers > MAX_DEPTH * 16) return true;
    for (const char of line) {
      if (char === "[" || char === "{") brackets++;
      else if (char === "]" || char === "}") brackets = Math.max(0, brackets - 1);
      if (brackets > MAX_DEPTH * 4) return true;
    }
  }
  return false;
}

function problemIn(root: ParsedNode | null): string | undefined {
  let entries = 0;
  let aliases = 0;
  const levels: { readonly node: ParsedNode; readonly depth: number }[] =
    root === null ? [] : [{ node: root, depth: 1 }];
  for (let next = levels.pop(); next !== undefined; next = levels.pop()) {
    const { node, depth } = next;
    if (depth > MAX_DEPTH) return `it is nested deeper than ${MAX_DEPTH} levels`;
    if (isAlias(node) && ++aliases > MAX_ALIASES) return `it has more than ${MAX_ALIASES} aliases`;
    if (!isMap(node) && !isSeq(node)) continue;
    entries += node.items.length;
    if (entries > MAX_ENTRIES) return `it has more than ${MAX_ENTRIES} entries`;
    const twice = isMap(node) ? doubledKey(node.items.map(({ key }) => key)) : undefined;
    if (twice !== undefined) return `Map keys must be unique: ${twice} appears twice`;
    const children = isMap(node) ? node.items.flatMap(({ key, value }) => [key, value]) : node.items;
    for (const child of children)
      if (child !== null) levels.push({ node: child as ParsedNode, depth: depth + 1 });
  }
  return undefined;
}

function doubledKey(keys: readonly unknown[]): string | undefined {
  const seen = new Set<unknown>();
  for (const key of keys) {
    const value = isScalar(key) ? key.value : key;
    if (seen.has(value)) return JSON.stringify(value);
    seen.add(value);
  }
  return undefined;
}
