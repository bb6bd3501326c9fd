/** A name of a type means one thing in the whole package. */
import { expect, test } from "vitest";
import { readSources } from "./support/imports.ts";

const DECLARATION = /^(?:export )?(?:declare )?(?:abstract )?(?:type|interface|class) ([A-Za-z_$][\w$]*)/gm;

/** Names of types declared in more than one file, with those files. */
function sharedNames(sources: ReadonlyMap<string, string>): string[] {
  const files = new Map<string, Set<string>>();
  for (const [path, source] of sources) {
    if (/\.(test|contract)\.ts$/.test(path)) continue;
    for (const [, name] of source.matchAll(DECLARATION))
      files.set(name!, (files.get(name!) ?? new Set()).add(path));
  }
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
