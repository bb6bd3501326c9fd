/** The public modules of the package, and the export list of a module as text, from its source: one line per name,
 *  types marked as such. In: package.json; the source of a module. Out: sorted lines. Refuses `export *`, which makes
 *  internals public. */
import { readFileSync } from "node:fs";

/** A subpath of package.json's exports: its import specifier, and the source behind it. */
export interface PublicModule {
  readonly specifier: string;
  readonly source: string;
}

export function publicModules(): PublicModule[] {
  const { name, exports } = JSON.parse(readFileSync("package.json", "utf8"));
  return Object.entries<{ default?: string }>(exports).flatMap(([subpath, target]) =>
    target.default === undefined
      ? []
      : [
          {
            specifier: `${name}${subpath.slice(1)}`,
            source: target.default.replace("./dist/", "src/").replace(/\.js$/, ".ts"),
          },
        ],
  );
}

export function exportLines(source: string): string[] {
  const code = source.replaceAll(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, "");
  if (/^export\s*\*/m.test(code)) throw new Error("`export *` makes internals public: list the names.");
  return [...listed(code), ...declared(code)].sort((a, b) => (bare(a) < bare(b) ? -1 : 1));
}

/** `export { a, type B, c as d }` and `export type { E }`. */
function listed(code: string): string[] {
  return [...code.matchAll(/^export\s+(type\s+)?\{([^}]*)\}/gm)].flatMap(([, type = "", names]) =>
    names!
      .split(",")
      .map((name) => name.trim())
      .filter((name) => name !== "")
      .map((name) => {
        const isType = type !== "" || name.startsWith("type ");
        return `${isType ? "type " : ""}${bare(name).split(" as ").at(-1)}`;
      }),
  );
}

/** `export function f`, `export interface I`, and so on. */
function declared(code: string): string[] {
  const pattern = /^export\s+(?:async\s+)?(const|let|function\*?|class|interface|type)\s+([\w$]+)/gm;
  return [...code.matchAll(pattern)].map(([, kind, name]) =>
    kind === "interface" || kind === "type" ? `type ${name}` : name!,
  );
}

function bare(line: string): string {
  return line.replace(/^type\s+/, "");
}
