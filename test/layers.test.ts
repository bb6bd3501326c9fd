import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import {
  crowdedFolders,
  doorFaults,
  importCycles,
  importsOf,
  layerFaults,
  MOST_FILES,
  PACKAGES,
  readSources,
} from "./support/imports.ts";

const sources = readSources("src");

describe("the layers of src/", () => {
  it("are imported downwards only, with the packages each may use", () => {
    expect(sources.size).toBeGreaterThan(5);
    expect(layerFaults(sources)).toEqual([]);
  });

  it("are entered through the index of a folder only", () => {
    expect(doorFaults(sources)).toEqual([]);
  });

  it("hold folders that a reader can take in", () => {
    expect(crowdedFolders(sources)).toEqual([]);
  });

  it("hold no import cycle", () => {
    expect(importCycles(sources)).toEqual([]);
  });

  it("name only packages that package.json installs for users, or asks for when they are needed", () => {
    const { dependencies, peerDependencies } = JSON.parse(readFileSync("package.json", "utf8"));
    const installed = Object.keys({ ...dependencies, ...peerDependencies });
    expect(installed).toEqual(expect.arrayContaining([...new Set(Object.values(PACKAGES).flat())]));
  });
});

describe("the check of the layers", () => {
  const faults = (path: string, source: string) => layerFaults(new Map([[path, source]]));

  it("sees every form of import and no comment", () => {
    const source = `
      import a from "./a.ts";
      import type { B } from "./b.ts";
      import {
        c,
      } from "./c.ts";
      import "./d.ts";
      export * from "./e.ts";
      export { type F, f } from './f.ts';
      const g = await import("./g.ts");
      // import x from "./x.ts";
      /** import y from "./y.ts"; */
      export const from = "z";
    `;
    expect(importsOf(source)).toEqual("abcdefg".split("").map((letter) => `./${letter}.ts`));
  });

  it.each([
    ["base/a.ts", 'import { z } from "../contract/b.ts";', "base may not import contract"],
    ["keep/batch/a.ts", 'export { z } from "../../learn/b.ts";', "keep may not import learn"],
    ["keep/admit/a.ts", 'import { z } from "../batch/index.ts";', "keep/admit may not import keep/batch"],
    [
      "collect/queue/x/a.ts",
      'import { z } from "../../sim/index.ts";',
      "collect/queue may not import collect/sim",
    ],
    [
      "collect/gateway/journal/a.ts",
      'import { z } from "../api/index.ts";',
      "collect/gateway/journal may not import collect/gateway/api",
    ],
    ["cli/a.ts", 'import { z } from "../../bench/b.ts";', "leaves src/"],
    ["base/a.ts", 'import { z } from "zod";', "not among the packages of base"],
    ["contract/a.ts", 'import { z } from "zod-extra";', "not among the packages of contract"],
    ["base/a.ts", 'import { readFileSync } from "node:fs";', "base is pure"],
    ["utils/a.ts", "", "not one of the layers"],
    ["cli/a.ts", 'import { openBook } from "../index.ts";', "is the front door"],
    ["index.ts", 'export { seal } from "./contract/index.ts";', "not the door of book, view, loop"],
    ["index.ts", 'export { openBook } from "./book/open-book.ts";', "not the door of book, view, loop"],
    ["index.ts", 'export { z } from "zod";', "not the door of book, view, loop"],
    ["index.ts", 'export * from "./book/index.ts";', "more than re-exports"],
    ["index.ts", "export const version = 1;", "more than re-exports"],
  ])("refuses in %s: %s", (path, source, fault) => {
    expect(faults(path, source)).toEqual([expect.stringContaining(fault)]);
  });

  it.each([
    ["contract/a.ts", 'import { z } from "zod/v4";'],
    ["contract/a.ts", 'import { z } from "../base/b.ts"; import { y } from "./c.ts";'],
    ["store/a.ts", 'import { readFileSync } from "node:fs";'],
    [
      "index.ts",
      '/** Doors. */\nexport { a } from "./book/index.ts";\nexport type { B } from "./view/index.ts";',
    ],
  ])("accepts in %s: %s", (path, source) => {
    expect(faults(path, source)).toEqual([]);
  });

  it("knows the door of a folder from its files, and a part loaded on demand from an import", () => {
    const behind = (source: string) => doorFaults(new Map([["keep/batch/rows/a.ts", source]]));
    expect(behind('import { z } from "../../admit/b.ts";')).toEqual([
      "keep/batch/rows/a.ts: keep/admit/b.ts is behind the door keep/admit/index.ts",
    ]);
    expect(behind('export { z } from "../shards/b.ts";')).toHaveLength(1);
    expect(behind('import type { Z } from "./b.ts"; import { y } from "../c.ts";')).toEqual([]);
    expect(behind('import { z } from "../../admit/index.ts"; await import("../../admit/b.ts");')).toEqual([]);
  });

  it("counts the files of a folder", () => {
    const files = (count: number) => new Map(Array.from({ length: count }, (_, i) => [`base/f${i}.ts`, ""]));
    expect(crowdedFolders(files(MOST_FILES))).toEqual([]);
    expect(crowdedFolders(files(MOST_FILES + 1))).toEqual([`base: ${MOST_FILES + 1}`]);
  });

  it("finds a cycle of any length", () => {
    const ring = new Map([
      ["base/a.ts", 'import "./b.ts";'],
      ["base/b.ts", 'import "./c.ts";'],
      ["base/c.ts", 'import "./a.ts";'],
      ["base/d.ts", 'import "./a.ts";'],
    ]);
    expect(importCycles(ring)).toEqual(["base/a.ts → base/b.ts → base/c.ts → base/a.ts"]);
  });
});
