/** Opens a sandbox: picks the engine, attacks it, and only then hands it out.
 *  In: engine name and number of workers. Out: Sandbox. Fails closed: there is no engine called "host". */
import { isRollbookError, type RollbookError } from "../../base/index.ts";
import type { DockerOptions } from "./docker/index.ts";
import { openPool } from "./pool.ts";
import { probe } from "./probe/index.ts";
import type { EngineName, Sandbox, SandboxEngine } from "./sandbox.ts";

export interface SandboxOptions {
  /** "auto" takes bubblewrap where it is installed, else QuickJS, which runs JavaScript only. Docker is never
   *  taken unasked: it needs a daemon and an image. */
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

/** The engine alone, neither probed nor pooled: for the attack suite and for diagnosis. */
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

/** Only a missing engine moves on to the next one. An engine that is there and broken is an error. */
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
