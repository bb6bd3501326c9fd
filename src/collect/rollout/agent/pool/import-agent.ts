/** Imports the module of an agent. In: its path. Out: the exported rollout, or an error that describes the fault.
 *  Node itself loads TypeScript (22.18 and later strip types). Otherwise tsx loads it, found from the agent's folder or
 *  the user's folder. */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, extname, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { RollbookError, reasonOf } from "../../../../base/index.ts";
import { defineRollout, type RolloutDefinition, type RolloutFunction } from "../agent.ts";

const SCRIPTS: ReadonlySet<string> = new Set([".js", ".mjs", ".cjs"]);
const TYPESCRIPT: ReadonlySet<string> = new Set([".ts", ".mts", ".cts"]);

export function isModule(path: string): boolean {
  return SCRIPTS.has(extname(path)) || TYPESCRIPT.has(extname(path));
}

export async function importAgent(path: string): Promise<RolloutDefinition> {
  const load = TYPESCRIPT.has(extname(path)) ? importTypeScript : importFile;
  return definitionIn(await load(path), path);
}

export function badAgent(path: string, problem: string, cause?: unknown): RollbookError {
  return new RollbookError(
    "bad-agent",
    { path },
    `${path} ${problem}.`,
    cause === undefined ? undefined : { cause },
  );
}

function cannotLoad(path: string, cause: unknown): RollbookError {
  const line = cause instanceof SyntaxError ? syntaxErrorLine(path) : undefined;
  const where = line === undefined ? "" : ` at line ${line}`;
  const reason = reasonOf(cause).replace(/\.+$/, "");
  return badAgent(
    path,
    `cannot be loaded: ${reason}${where}. Name a module whose default export is a rollout, and which runs nothing else when it is imported`,
    cause,
  );
}

/** Finds the line with `node --check`, since `import()` does not report it. Undefined if another file has the error. */
function syntaxErrorLine(path: string): string | undefined {
  const { stderr } = spawnSync(process.execPath, ["--check", path], { encoding: "utf8" });
  return /:(\d+)$/.exec(stderr?.split("\n")[0] ?? "")?.[1];
}

type Module = { readonly default?: unknown };

async function importFile(path: string): Promise<Module> {
  try {
    return (await import(pathToFileURL(path).href)) as Module;
  } catch (cause) {
    throw cannotLoad(path, cause);
  }
}

async function importTypeScript(path: string): Promise<Module> {
  try {
    return (await import(pathToFileURL(path).href)) as Module;
  } catch (cause) {
    if (!isUnknownExtension(cause)) throw cannotLoad(path, cause);
  }
  const api = findTsx([path, resolve("package.json")]);
  if (api === undefined)
    throw badAgent(
      path,
      `is TypeScript, which Node ${process.versions.node} does not run. Install tsx beside it (npm i -D tsx), use Node 22.18 or later, or compile it to .mjs`,
    );
  const { tsImport } = (await import(pathToFileURL(api).href)) as {
    tsImport(file: string, parent: string): Promise<Module>;
  };
  try {
    return unwrap(await tsImport(pathToFileURL(path).href, import.meta.url));
  } catch (cause) {
    throw cannotLoad(path, cause);
  }
}

/** A TypeScript file in a folder without "type": "module" loads as CommonJS. Its exports are then one level down. */
function unwrap(module: Module): Module {
  const inner = module.default as Module | undefined;
  return typeof inner === "object" && inner !== null && "default" in inner ? inner : module;
}

function findTsx(places: readonly string[]): string | undefined {
  for (const place of places) {
    try {
      // Resolves through package.json: `require` would resolve to the CommonJS build, which cannot import.
      const manifest = createRequire(place).resolve("tsx/package.json");
      const { exports } = JSON.parse(readFileSync(manifest, "utf8"));
      return join(dirname(manifest), exports["./esm/api"].import.default);
    } catch {
      // Not in this place: try the next. After the last one the caller reports what to install.
    }
  }
  return undefined;
}

function isUnknownExtension(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === "ERR_UNKNOWN_FILE_EXTENSION";
}

function definitionIn(module: Module, path: string): RolloutDefinition {
  const found = module.default;
  if (typeof found === "function") return defineRollout(found as RolloutFunction);
  if ((found as RolloutDefinition | undefined)?.rollbook === "rollout-definition.v1")
    return found as RolloutDefinition;
  throw badAgent(
    path,
    "has no function as its default export. Write: export default async (payload, context) => …, or wrap the function with defineRollout of the module rollbook/rollout",
  );
}
