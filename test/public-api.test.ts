import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { describe, expect, it } from "vitest";
import { exportLines } from "./support/public-api.ts";

const { name, exports } = JSON.parse(readFileSync("package.json", "utf8"));
const modules = Object.entries<string>(exports).filter(([, target]) => target.endsWith(".js"));
const sourceOf = (target: string): string => target.replace("./dist/", "src/").replace(/\.js$/, ".ts");

describe("the public API", () => {
  it("is exactly what test/public-api.txt lists; edit that file by hand in the change that alters the API", () => {
    const actual = modules.map(([subpath, target]) => {
      const lines = exportLines(readFileSync(sourceOf(target), "utf8"));
      return [`${name}${subpath.slice(1)}`, ...lines.map((line) => `  ${line}`)].join("\n");
    });
    expect(`${actual.join("\n\n")}\n`).toBe(readFileSync("test/public-api.txt", "utf8"));
  });

  it.each(modules)("%s exports at run time the values it lists", async (_subpath, target) => {
    const source = sourceOf(target);
    const values = exportLines(readFileSync(source, "utf8")).filter((line) => !line.startsWith("type "));
    const module = await import(pathToFileURL(source).href);
    expect(Object.keys(module).sort()).toEqual(values.sort());
  });
});

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
