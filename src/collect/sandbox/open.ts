/** Opens a sandbox: selects the engine, attacks it, and returns it only after that.
 *  In: engine name and number of workers. Out: Sandbox. Fails closed: there is no engine called "host". */
import { isRollbookError, type RollbookError } from "../../base/index.ts";
import type { DockerOptions } from "./docker/index.ts";
import { openPool } from "./pool.ts";
import { probe } from "./probe/index.ts";
import type { EngineName, Sandbox, SandboxEngine } from "./sandbox.ts";

export interface SandboxOptions {
  /** "auto" takes bubblewrap if it is available, else QuickJS, which runs only JavaScript. Docker is used only on
   *  request: it needs a daemon and an image. */
  readonly engine: EngineName | "auto";
  readonly workers?: number;
  readonly docker?: DockerOptions;
}

export async function openSandbox(options: SandboxOptions): Promise<Sandbox> {
  const engine =
    options.engine === "auto" ? await openBest() : await openEngine(options.engine, options.docker);
  try {
    await probe(engine);
    return await openPool(engine, options.workers ?? 2);
  } catch (error) {
    await engine.close();
    throw error;
  }
}

/** Opens only the engine, without probe and pool, for the attack suite and for diagnosis. */
export async function openEngine(name: EngineName, docker: DockerOptions = {}): Promise<SandboxEngine> {
  switch (name) {
    case "bubblewrap":
      return (await import("./bubblewrap/engine.ts")).openBubblewrap();
    case "docker":
      return (await import("./docker/engine.ts")).openDocker(docker);
    case "quickjs":
      return (await import("./quickjs/engine.ts")).openQuickjs();
    default:
      return name satisfies never;
  }
}

/** Falls back only if the engine is missing. An engine that is present but broken is an error. */
async function openBest(): Promise<SandboxEngine> {
  try {
    return await openEngine("bubblewrap");
  } catch (error) {
    if (!isMissing(error)) throw error;
    return openEngine("quickjs");
  }
}

function isMissing(error: unknown): error is RollbookError {
  return (
    isRollbookError(error, "sandbox-engine-missing") ||
    isRollbookError(error, "sandbox-no-cgroups") ||
    isRollbookError(error, "sandbox-no-seccomp")
  );
}
