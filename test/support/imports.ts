/** Reads the imports of each module, and finds those that break the layers. In: source texts by path below src/. Out:
 *  faults in words. Does not resolve packages: the compiler does. */
import { readdirSync, readFileSync } from "node:fs";
import { posix } from "node:path";

/** The folders of src/, each allowed to import those before it and itself. */
export const LAYERS = [
  ...["base", "contract", "store", "policy", "collect", "keep", "learn", "judge", "serve", "convert", "book"],
  ...["view", "loop", "cli", "exports"],
];

/** The same rule for the folders that have inner layers, by the path of the folder. */
export const INNER_LAYERS: Readonly<Record<string, readonly string[]>> = {
  contract: ["codec", "task", "policy", "trust", "rollout", "batch", "loop", "psionic"],
  store: ["disk", "blob", "pack", "remote", "log", "catalog", "gc"],
  collect: ["sandbox", "queue", "rollout", "gateway", "telemetry", "sim"],
  "collect/gateway": [
    ...["dialects", "wire", "upstream", "redact", "journal", "sealing", "rollouts", "call", "api"],
  ],
  keep: ["admit", "replay", "batch", "verify", "erase", "pack"],
  learn: ["rows", "linear", "bandit", "online", "value", "tensor", "neural", "train"],
  judge: ["ope", "evaluate", "bench"],
  book: [
    "open",
    "embed",
    "import",
    "rollouts",
    "batches",
    "replay",
    "maintain",
    "serve",
    "collect",
    "decisions",
    "convert",
    "judge",
    "sim",
    "train",
    "loop",
  ],
};

/** Largest number of files in one folder, without tests. A reader cannot survey a larger folder. */
export const MOST_FILES = 20;

/** The packages that each folder may import. Every folder except the pure ones may also import Node's own modules. */
export const PACKAGES: Readonly<Record<string, readonly string[]>> = {
  contract: ["zod"],
  store: ["libsql", "@aws-sdk/client-s3"],
  policy: ["yaml", "zod"],
  collect: [
    "@jitl/quickjs-wasmfile-release-sync",
    "@nats-io/jetstream",
    "@nats-io/transport-node",
    "quickjs-emscripten-core",
    "undici",
    "zod",
  ],
  keep: ["numcodecs"],
  serve: ["zod"],
  convert: ["hyparquet", "hyparquet-writer", "zod"],
  loop: ["zod"],
  cli: ["commander"],
};

/** Folders without I/O, with the only Node modules that they may import. */
export const PURE: Readonly<Record<string, readonly string[]>> = {
  base: ["node:buffer", "node:crypto"],
  contract: ["node:crypto"],
};

/** The package's main entry: it re-exports only from the entry modules of these folders. */
export const FRONT_DOOR = "index.ts";
const BEHIND_THE_DOOR: readonly string[] = ["book", "view", "loop"];

export type Sources = ReadonlyMap<string, string>;

/** Every module of src/ that ships, so no tests. */
export function readSources(root: string): Sources {
  const paths = readdirSync(root, { recursive: true, encoding: "utf8" })
    .map((path) => path.replaceAll("\\", "/"))
    .filter((path) => path.endsWith(".ts") && !path.endsWith(".test.ts"));
  return new Map(paths.sort().map((path) => [path, readFileSync(`${root}/${path}`, "utf8")]));
}

export function importsOf(source: string, which: "all" | "static" = "all"): string[] {
  const comments = /\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm;
  const code = source.replaceAll(comments, "").replaceAll(which === "static" ? /\bimport\s*\(/g : /$^/g, "(");
  const pattern =
    /\b(?:import|export)\b[^"'`;()]*?\bfrom\s*["']([^"']+)["']|(?<!["'])\bimport\s*\(?\s*["']([^"']+)["']/g;
  return [...code.matchAll(pattern)].map((match) => (match[1] ?? match[2])!);
}

/** Static imports that bypass a folder's `index.ts`. A module imports directly only files of its own folder and of the
 *  folders around it. It imports everything else through an `index.ts`. `import()` may name a file: it loads one heavy
 *  part on demand. */
export function doorFaults(sources: Sources): string[] {
  return [...sources].flatMap(([path, source]) =>
    importsOf(source, "static")
      .filter((specifier) => specifier.startsWith("."))
      .map((specifier) => resolve(path, specifier))
      .filter((target) => posix.basename(target) !== "index.ts" && !isAround(posix.dirname(target), path))
      .map((target) => `${path}: ${target} is behind the door ${posix.dirname(target)}/index.ts`),
  );
}

/** Folders with more files than `MOST_FILES`. */
export function crowdedFolders(sources: Sources): string[] {
  const counts = new Map<string, number>();
  for (const path of sources.keys()) {
    const folder = posix.dirname(path);
    counts.set(folder, (counts.get(folder) ?? 0) + 1);
  }
  return [...counts]
    .filter(([, count]) => count > MOST_FILES)
    .map(([folder, count]) => `${folder}: ${count}`);
}

/** cli/ and view/ hold one file per command or page, imported one by one. An `index.ts` would load every stage for
 *  each. */
const TAKEN_SINGLY: readonly string[] = ["cli", "view"];

function isAround(folder: string, path: string): boolean {
  return folder === "." || path.startsWith(`${folder}/`) || TAKEN_SINGLY.includes(folderOf(folder));
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
  if (LAYERS.indexOf(to) > LAYERS.indexOf(from)) return `is a layer above: ${from} may not import ${to}`;
  for (const [folder, inner] of Object.entries(INNER_LAYERS)) {
    if (!path.startsWith(`${folder}/`) || !target.startsWith(`${folder}/`)) continue;
    const [innerFrom, innerTo] = [
      folderOf(path.slice(folder.length + 1)),
      folderOf(target.slice(folder.length + 1)),
    ];
    if (inner.includes(innerFrom) && inner.indexOf(innerTo) > inner.indexOf(innerFrom))
      return `is a layer above: ${folder}/${innerFrom} may not import ${folder}/${innerTo}`;
  }
  return undefined;
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
