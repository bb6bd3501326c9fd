/** Reads who imports whom, and says which imports break the layers.
 *  In: source texts by path below src/. Out: faults in words. Does not resolve packages: the compiler does. */
import { readdirSync, readFileSync } from "node:fs";
import { posix } from "node:path";

/** The folders of src/, each allowed to import those before it and itself. */
export const LAYERS = [
  ...["base", "contract", "store", "policy", "collect", "keep", "learn", "judge", "serve", "convert", "book"],
  ...["view", "loop", "cli"],
];

/** The packages each folder may import; every folder but the pure ones may also import Node's own modules. */
export const PACKAGES: Readonly<Record<string, readonly string[]>> = {
  contract: ["zod"],
  store: ["libsql"],
  policy: ["yaml", "zod"],
  collect: ["@jitl/quickjs-wasmfile-release-sync", "quickjs-emscripten-core", "undici", "yaml", "zod"],
  keep: ["numcodecs"],
  convert: ["hyparquet-writer"],
  cli: ["commander"],
};

/** Folders without I/O, and the only modules of Node they may import. */
export const PURE: Readonly<Record<string, readonly string[]>> = {
  base: ["node:buffer", "node:crypto"],
  contract: ["node:crypto"],
};

/** The package's front door: it re-exports from the doors of these folders, and nothing else. */
export const FRONT_DOOR = "index.ts";
const BEHIND_THE_DOOR: readonly string[] = ["book", "view", "loop"];

export type Sources = ReadonlyMap<string, string>;

/** Every module of src/ that ships: tests and contract suites do not. */
export function readSources(root: string): Sources {
  const paths = readdirSync(root, { recursive: true, encoding: "utf8" })
    .map((path) => path.replaceAll("\\", "/"))
    .filter((path) => path.endsWith(".ts") && !/\.(test|contract)\.ts$/.test(path));
  return new Map(paths.sort().map((path) => [path, readFileSync(`${root}/${path}`, "utf8")]));
}

export function importsOf(source: string): string[] {
  const code = source.replaceAll(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, "");
  const pattern =
    /\b(?:import|export)\b[^"'`;()]*?\bfrom\s*["']([^"']+)["']|(?<!["'])\bimport\s*\(?\s*["']([^"']+)["']/g;
  return [...code.matchAll(pattern)].map((match) => (match[1] ?? match[2])!);
}

export function layerFaults(sources: Sources): string[] {
  const faults: string[] = [];
  for (const [path, source] of sources) {
    if (path === FRONT_DOOR) {
      faults.push(...frontDoorFaults(source));
      continue;
    }
    for (const specifier of importsOf(source)) {
      const fault = specifier.startsWith(".")
        ? relativeFault(path, specifier)
        : packageFault(path, specifier);
      if (fault !== undefined) faults.push(`${path}: ${specifier} ${fault}`);
    }
    if (!LAYERS.includes(folderOf(path))) faults.push(`${path}: its folder is not one of the layers`);
  }
  return faults;
}

/** The first cycle found from each module, as a chain of paths. */
export function importCycles(sources: Sources): string[] {
  const cycles: string[] = [];
  const done = new Set<string>();
  const walk = (path: string, chain: readonly string[]): void => {
    if (chain.includes(path)) {
      cycles.push([...chain.slice(chain.indexOf(path)), path].join(" → "));
      return;
    }
    if (done.has(path)) return;
    for (const target of targetsOf(path, sources)) walk(target, [...chain, path]);
    done.add(path);
  };
  for (const path of sources.keys()) walk(path, []);
  return cycles;
}

function targetsOf(path: string, sources: Sources): string[] {
  return importsOf(sources.get(path) ?? "")
    .filter((specifier) => specifier.startsWith("."))
    .map((specifier) => resolve(path, specifier));
}

function frontDoorFaults(source: string): string[] {
  const doors = BEHIND_THE_DOOR.map((folder) => `./${folder}/index.ts`);
  const faults = importsOf(source)
    .filter((specifier) => !doors.includes(specifier))
    .map((specifier) => `${FRONT_DOOR}: ${specifier} is not the door of ${BEHIND_THE_DOOR.join(", ")}`);
  const rest = source
    .replaceAll(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, "")
    .replaceAll(/^export\s+(type\s+)?\{[^}]*\}\s*from\s*["'][^"']+["'];/gm, "");
  return rest.trim() === "" ? faults : [...faults, `${FRONT_DOOR}: holds more than re-exports`];
}

function relativeFault(path: string, specifier: string): string | undefined {
  const target = resolve(path, specifier);
  if (target.startsWith("..")) return "leaves src/";
  if (target === FRONT_DOOR) return "is the front door, which is for users of the package";
  const [from, to] = [folderOf(path), folderOf(target)];
  return LAYERS.indexOf(to) > LAYERS.indexOf(from)
    ? `is a layer above: ${from} may not import ${to}`
    : undefined;
}

function packageFault(path: string, specifier: string): string | undefined {
  const folder = folderOf(path);
  if (specifier.startsWith("node:")) {
    const allowed = PURE[folder];
    return allowed === undefined || allowed.includes(specifier) ? undefined : `is I/O, and ${folder} is pure`;
  }
  const name = specifier
    .split("/")
    .slice(0, specifier.startsWith("@") ? 2 : 1)
    .join("/");
  return PACKAGES[folder]?.includes(name) ? undefined : `is not among the packages of ${folder}`;
}

function resolve(path: string, specifier: string): string {
  return posix.normalize(posix.join(posix.dirname(path), specifier));
}

function folderOf(path: string): string {
  return path.split("/")[0]!;
}
