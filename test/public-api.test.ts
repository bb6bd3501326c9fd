import { readFileSync } from "node:fs";
import { posix } from "node:path";
import { pathToFileURL } from "node:url";
import { describe, expect, it } from "vitest";
import { importsOf, readSources, type Sources } from "./support/imports.ts";
import { moduleSections } from "./support/module-docs.ts";
import { exportLines, publicModules } from "./support/public-api.ts";

const modules = publicModules();

describe("the public API", () => {
  it("is exactly what test/public-api.txt lists; edit that file by hand in the change that alters the API", () => {
    const actual = modules.map(({ specifier, source }) => {
      const lines = exportLines(readFileSync(source, "utf8"));
      return [specifier, ...lines.map((line) => `  ${line}`)].join("\n");
    });
    expect(`${actual.join("\n\n")}\n`).toBe(readFileSync("test/public-api.txt", "utf8"));
  });

  it("has at most 360 names", () => {
    const names = modules.flatMap(({ source }) => exportLines(readFileSync(source, "utf8")));
    expect(names.length).toBeLessThanOrEqual(360);
  });

  it.each(modules)("$specifier exports at run time the values it lists", async ({ source }) => {
    const values = exportLines(readFileSync(source, "utf8")).filter((line) => !line.startsWith("type "));
    const module = await import(pathToFileURL(source).href);
    expect(Object.keys(module).sort()).toEqual(values.sort());
  });

  it("has a section in docs/reference/modules.md for every subpath, with an example of its own and all its names", () => {
    const sections = moduleSections();
    const documented = modules.filter(({ specifier }) => specifier !== "rollbook");
    expect(sections.map(({ specifier }) => specifier)).toEqual(documented.map(({ specifier }) => specifier));
    for (const [index, { specifier, example, names }] of sections.entries()) {
      const listed = exportLines(readFileSync(documented[index]!.source, "utf8"));
      expect([...names].sort(), specifier).toEqual([...listed].sort());
      expect(example, specifier).toContain(`from "${specifier}"`);
      expect(example.trimEnd().split("\n").length, specifier).toBeLessThanOrEqual(12);
    }
  });

  it("loads the psionic codec under rollbook/psionic only, not with rollbook/contract", () => {
    const sources = readSources("src");
    expect(reachableFrom("exports/psionic.ts", sources)).toContain("contract/psionic/index.ts");
    const loaded = reachableFrom("exports/contract.ts", sources);
    expect(loaded).toContain("contract/rollout/index.ts");
    expect(loaded.filter((path) => path.startsWith("contract/psionic/"))).toEqual([]);
  });
});

/** Every module that an import of `path` loads, types included. */
function reachableFrom(path: string, sources: Sources): string[] {
  const found = new Set([path]);
  for (const each of found)
    for (const specifier of importsOf(sources.get(each)!, "static"))
      if (specifier.startsWith(".")) found.add(posix.join(posix.dirname(each), specifier));
  return [...found];
}

describe("exportLines", () => {
  it("reads lists, renames and declarations, and marks types", () => {
    const source = `
export { b, type A, c as d } from "./x.ts";
export type { E } from "./y.ts";
export {
  f,
} from "./z.ts";
export interface G {}
export const h = 1;
export async function i() {}
// export { no } from "./n.ts";
`;
    expect(exportLines(source)).toEqual(["type A", "type E", "type G", "b", "d", "f", "h", "i"]);
  });

  it("refuses export *", () => {
    expect(() => exportLines('export * from "./x.ts";')).toThrow("list the names");
  });
});
