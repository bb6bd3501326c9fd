/** A type name means one thing in the whole package. So does the name of a function that other folders may import. */
import { posix } from "node:path";
import { expect, test } from "vitest";
import { readSources, type Sources } from "./support/imports.ts";

const TYPE = /^(?:export )?(?:declare )?(?:abstract )?(?:type|interface|class) ([A-Za-z_$][\w$]*)/gm;
const EXPORTED_FUNCTION =
  /^export (?:(?:async )?function\*? ([\w$]+)|const ([\w$]+)(?:: [^=\n]+)? = (?:async )?[(<])/gm;

/** Names of types declared in more than one file, with those files. */
function sharedNames(sources: Sources): string[] {
  const files = new Map<string, Set<string>>();
  for (const [path, source] of sources) {
    if (/\.(test|contract)\.ts$/.test(path)) continue;
    for (const [, name] of source.matchAll(TYPE)) note(files, name!, path);
  }
  return linesOf(files);
}

/** Names of functions that two entry modules offer, or that two files of `view` and `cli` export, with the files that
 *  declare them. `book` is exempt: it reuses names for versions with defaults, such as `openBook` on a store and on a
 *  book. */
function sharedFunctions(sources: Sources): string[] {
  const files = new Map<string, Set<string>>();
  for (const path of sources.keys())
    if (isDoor(path)) for (const [name, file] of functionsOf(path, sources)) note(files, name, file);
  return linesOf(files);
}

function isDoor(path: string): boolean {
  const [folder, ...rest] = path.split("/");
  if (folder === "book" || folder === "exports" || rest.length === 0) return false;
  if (folder === "view" || folder === "cli") return true;
  const depth = ["collect", "keep", "learn", "judge"].includes(folder!) ? 2 : 1;
  return rest.at(-1) === "index.ts" && rest.length <= depth;
}

/** Functions that a module exports, its own or re-exported: the name of each, and the file that declares it. */
function functionsOf(path: string, sources: Sources): Map<string, string> {
  const source = sources.get(path) ?? "";
  const found = new Map<string, string>();
  for (const [, one, other] of source.matchAll(EXPORTED_FUNCTION)) found.set((one ?? other)!, path);
  for (const [, list, from] of source.matchAll(/^export (?:\{([^}]*)\}|\*) from "(\.[^"]+)";/gm)) {
    const names = list?.split(",").map((name) => name.trim());
    for (const [name, file] of functionsOf(posix.join(posix.dirname(path), from!), sources))
      if (names === undefined || names.includes(name)) found.set(name, file);
  }
  return found;
}

function note(files: Map<string, Set<string>>, name: string, path: string): void {
  files.set(name, (files.get(name) ?? new Set()).add(path));
}

function linesOf(files: ReadonlyMap<string, ReadonlySet<string>>): string[] {
  return [...files]
    .filter(([, paths]) => paths.size > 1)
    .map(([name, paths]) => `${name}: ${[...paths].join(", ")}`)
    .sort();
}

test("no two files declare a type of the same name", () => {
  const sources = readSources("src");
  expect(sources.size).toBeGreaterThan(5);
  expect(sharedNames(sources)).toEqual([]);
});

test("no two functions that other folders may import have the same name", () => {
  expect(sharedFunctions(readSources("src"))).toEqual([]);
});

test("the check sees every kind of declaration, and no name inside a function or a comment", () => {
  const twice = (source: string) =>
    sharedNames(
      new Map([
        ["a.ts", source],
        ["b.ts", "type Name = 1;"],
      ]),
    );
  for (const source of ["interface Name {}", "export class Name {}", "export abstract class Name<T> {}"])
    expect(twice(source)).toEqual(["Name: a.ts, b.ts"]);
  for (const source of ["  type Name = 2;", "// type Name = 2;", "const Name = 2;", "type Names = 2;"])
    expect(twice(source)).toEqual([]);
});

test("the check of functions follows doors to what they offer, and to nothing else", () => {
  const shared = (path: string, source: string) =>
    sharedFunctions(
      new Map([
        ["view/a.ts", "export function name() {}"],
        ["store/index.ts", 'export * from "./disk/index.ts";'],
        ["store/disk/index.ts", 'export { name } from "./b.ts";'],
        [path, source],
      ]),
    );
  for (const source of ["export async function name() {}", "export const name = (one: 1) => one;"])
    expect(shared("store/disk/b.ts", source)).toEqual(["name: view/a.ts, store/disk/b.ts"]);
  expect(shared("store/disk/b.ts", "function name() {}")).toEqual([]);
  expect(shared("store/disk/c.ts", "export function name() {}")).toEqual([]);
  expect(shared("book/open/index.ts", "export function name() {}")).toEqual([]);
  expect(shared("judge/ope/index.ts", "export function name() {}")).toEqual([
    "name: view/a.ts, judge/ope/index.ts",
  ]);
});
