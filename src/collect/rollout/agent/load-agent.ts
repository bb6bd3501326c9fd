/** Loads an agent of any kind. In: a path or a URL. Out: an Agent, identified by the digest of its file.
 *  .js, .mjs and .cjs run in separate, reused processes. So do .ts and .mts, if Node strips types or tsx is installed.
 *  .py runs with the Python of ROLLBOOK_PYTHON, of the active virtual environment or of the path. That Python finds the
 *  package in python/. http(s) URLs are servers. Any other file runs as a program, if it is executable. */
import { accessSync, constants, existsSync, readFileSync, realpathSync } from "node:fs";
import { basename, delimiter, dirname, extname, isAbsolute, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { type Digest, digestBytes, fileReason } from "../../../base/index.ts";
import { type Agent, functionAgent } from "./agent.ts";
import {
  badAgent,
  type Confinement,
  confined,
  environmentFor,
  importAgent,
  isModule,
  pooledAgent,
} from "./pool/index.ts";
import { programAgent, serverAgent } from "./program.ts";

interface LoadOptions extends Confinement {
  /** Confines programs like modules. If false, a program runs with the rights of this user (default: false). */
  readonly confinePrograms?: boolean;
}

export async function loadAgent(spec: string, options: LoadOptions = {}): Promise<Agent> {
  if (/^https?:\/\//.test(spec)) return serverAgent(spec);
  const path = resolve(spec);
  const digest = digestBytes("rollbook.agent.v1", readAgent(path));
  const identity = { name: basename(path), digest };
  if (!isModule(path)) return programIn(path, identity, options);
  if (options.isolation === "none") return functionAgent(await importAgent(path), identity);
  return pooledAgent(realpathSync(path), { ...options, ...identity });
}

function programIn(
  path: string,
  identity: { name: string; digest: Digest },
  { confinePrograms, ...confinement }: LoadOptions,
): Agent {
  const isPython = extname(path) === ".py";
  if (!isPython) checkExecutable(path);
  const real = realpathSync(path);
  const python = interpreter(process.env);
  const argv = isPython ? [python, real] : [real];
  const env = isPython ? withPythonPackage(environmentFor(confinement)) : environmentFor(confinement);
  if (confinePrograms !== true || confinement.isolation === "none")
    return programAgent({ argv, env, ...identity });
  const needs = isPython ? [...interpreterPrefix(python), ...pythonPackage()] : [];
  const confinedProgram = () =>
    programAgent({
      argv: confined(argv, { ...confinement, agent: real, needs, channel: false }),
      ...{ env, ...identity },
    });
  // Confines each rollout anew: a path to hide may not have existed before.
  return { ...confinedProgram(), run: (payload, context) => confinedProgram().run(payload, context) };
}

/** The folder of the bundled Python package. Agents import it without an installation. */
function pythonPackage(): string[] {
  const folder = fileURLToPath(new URL("../../../../python", import.meta.url));
  return existsSync(join(folder, "rollbook")) ? [realpathSync(folder)] : [];
}

/** Appends the bundled folder last, so that folders named by the user come first. */
function withPythonPackage(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const folders = [...(env.PYTHONPATH ? [env.PYTHONPATH] : []), ...pythonPackage()];
  return folders.length === 0 ? env : { ...env, PYTHONPATH: folders.join(delimiter) };
}

/** Selects the Python for `.py` agents. A virtual environment counts even if its `bin` is not on the path. */
function interpreter({ ROLLBOOK_PYTHON, VIRTUAL_ENV }: NodeJS.ProcessEnv): string {
  if (ROLLBOOK_PYTHON) return ROLLBOOK_PYTHON;
  const inVenv = VIRTUAL_ENV ? join(VIRTUAL_ENV, "bin", "python3") : undefined;
  return inVenv !== undefined && existsSync(inVenv) ? inVenv : "python3";
}

/** Folders in which an interpreter outside of /usr keeps its modules, beside `bin`. A virtual environment has modules
 *  beside the link and beside its target. */
function interpreterPrefix(name: string): string[] {
  if (isAbsolute(name))
    return [name, realpathSync(name)].map((each) => dirname(dirname(each))).filter(isOutside);
  for (const folder of (process.env.PATH ?? "").split(delimiter)) {
    try {
      return [dirname(dirname(realpathSync(join(folder, name))))].filter(isOutside);
    } catch {
      // Not in this folder: try the next one.
    }
  }
  return [];
}

/** True if a folder is outside of /usr, which every confined agent sees. */
export function isOutside(folder: string): boolean {
  return folder !== "/usr" && !folder.startsWith("/usr/");
}

function checkExecutable(path: string): void {
  try {
    accessSync(path, constants.X_OK);
  } catch (cause) {
    throw badAgent(
      path,
      "is not an agent: it is neither JavaScript, TypeScript nor Python, and not executable. Name another file, or make it executable",
      cause,
    );
  }
}

function readAgent(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (cause) {
    throw badAgent(path, `cannot be read: ${fileReason(cause)}. Correct the path of the agent`, cause);
  }
}
