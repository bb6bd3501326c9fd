/** Finds out what an agent is and makes it runnable. In: a path or a URL. Out: an Agent, known by the digest of its file.
 *  .js, .mjs and .cjs are imported; .ts and .mts too, where Node strips types or tsx is installed; .py runs with
 *  python3; http(s) URLs are servers; any other file is run as a program, if it is executable. */
import { accessSync, constants, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { basename, dirname, extname, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { type Digest, digestBytes, RollbookError, reasonOf } from "../../../base/index.ts";
import { type Agent, functionAgent, type RolloutDefinition, type RolloutFunction } from "./agent.ts";
import { programAgent, serverAgent } from "./program.ts";

const SCRIPTS: ReadonlySet<string> = new Set([".js", ".mjs", ".cjs"]);
const TYPESCRIPT: ReadonlySet<string> = new Set([".ts", ".mts", ".cts"]);

export async function loadAgent(spec: string): Promise<Agent> {
  if (/^https?:\/\//.test(spec)) return serverAgent(spec);
  const path = resolve(spec);
  const digest = digestBytes("rollbook.agent.v1", readAgent(path));
  const identity = { name: basename(path), digest };
  const extension = extname(path);
  if (SCRIPTS.has(extension)) return functionAgent(definitionIn(await importFile(path), path), identity);
  if (TYPESCRIPT.has(extension))
    return functionAgent(definitionIn(await importTypeScript(path), path), identity);
  return programIn(path, { extension, ...identity });
}

function programIn(
  path: string,
  { extension, ...identity }: { extension: string; name: string; digest: Digest },
): Agent {
  if (extension === ".py") return programAgent({ argv: ["python3", path], ...identity });
  try {
    accessSync(path, constants.X_OK);
  } catch (cause) {
    throw bad(
      path,
      "is neither JavaScript, TypeScript, Python nor executable. Make it executable, or wrap it",
      cause,
    );
  }
  return programAgent({ argv: [path], ...identity });
}

function readAgent(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (cause) {
    throw bad(path, `cannot be read: ${reasonOf(cause)}`, cause);
  }
}

type Module = { readonly default?: unknown };

async function importFile(path: string): Promise<Module> {
  try {
    return (await import(pathToFileURL(path).href)) as Module;
  } catch (cause) {
    throw bad(path, `cannot be loaded: ${reasonOf(cause)}`, cause);
  }
}

/** Node's own way first (22.18 and later strip types), then tsx from where the agent or the user stands. */
async function importTypeScript(path: string): Promise<Module> {
  try {
    return (await import(pathToFileURL(path).href)) as Module;
  } catch (cause) {
    if (!isUnknownExtension(cause)) throw bad(path, `cannot be loaded: ${reasonOf(cause)}`, cause);
  }
  const api = findTsx([path, resolve("package.json")]);
  if (api === undefined)
    throw bad(
      path,
      `is TypeScript, which Node ${process.versions.node} does not run. Install tsx beside it (npm i -D tsx), use Node 22.18 or later, or compile it to .mjs`,
    );
  const { tsImport } = (await import(pathToFileURL(api).href)) as {
    tsImport(file: string, parent: string): Promise<Module>;
  };
  try {
    return unwrap(await tsImport(pathToFileURL(path).href, import.meta.url));
  } catch (cause) {
    throw bad(path, `cannot be loaded: ${reasonOf(cause)}`, cause);
  }
}

/** A TypeScript file in a folder without "type": "module" comes as CommonJS, its exports one level down. */
function unwrap(module: Module): Module {
  const inner = module.default as Module | undefined;
  return typeof inner === "object" && inner !== null && "default" in inner ? inner : module;
}

function findTsx(places: readonly string[]): string | undefined {
  for (const place of places) {
    try {
      // By its package.json: `require` would resolve to the CommonJS build, which cannot import.
      const manifest = createRequire(place).resolve("tsx/package.json");
      const { exports } = JSON.parse(readFileSync(manifest, "utf8"));
      return join(dirname(manifest), exports["./esm/api"].import.default);
    } catch {
      // Not here: the next place, then the caller says what to install.
    }
  }
  return undefined;
}

function isUnknownExtension(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === "ERR_UNKNOWN_FILE_EXTENSION";
}

function definitionIn(module: Module, path: string): RolloutDefinition | RolloutFunction {
  const found = module.default;
  if (typeof found === "function") return found as RolloutFunction;
  if ((found as RolloutDefinition | undefined)?.rollbook === "rollout-definition.v1")
    return found as RolloutDefinition;
  throw bad(
    path,
    "has no rollout as its default export. Write: export default defineRollout(async (payload, context) => …)",
  );
}

function bad(path: string, problem: string, cause?: unknown): RollbookError {
  return new RollbookError(
    "bad-agent",
    { path },
    `${path} ${problem}.`,
    cause === undefined ? undefined : { cause },
  );
}
