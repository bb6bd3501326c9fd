/** The build: campaigns and benchmarks run it as users do. Running the sources through tsx is a fifth slower. */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { RollbookError } from "../../src/base/errors.ts";

const REPO = fileURLToPath(new URL("../..", import.meta.url));
export const MAIN = fileURLToPath(new URL("../../dist/cli/main.js", import.meta.url));

export function requireBuild(): void {
  if (!existsSync(MAIN))
    throw new RollbookError("no-build", { path: MAIN }, "dist/ is missing. Run: npm run build");
}

let compiled: string | undefined;

/** A folder with every module of src/ compiled, for programs that use more than the package exports: the build is
 *  bundled. Removed when this process ends. */
export function compiledModules(): string {
  if (compiled !== undefined) return compiled;
  // Inside the repository, so that the modules find their packages.
  mkdirSync(join(REPO, ".cache"), { recursive: true });
  const folder = mkdtempSync(join(REPO, ".cache", "modules-"));
  process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
  const tsc = join(REPO, "node_modules", "typescript", "bin", "tsc");
  const project = join(REPO, "tsconfig.build.json");
  const args = [tsc, "-p", project, "--outDir", folder, "--declaration", "false", "--noCheck"];
  const { status, stdout } = spawnSync(process.execPath, args, { encoding: "utf8" });
  if (status !== 0) throw new RollbookError("bench-failed", { status }, `tsc: ${stdout}`);
  compiled = folder;
  return folder;
}

/** A compiled module, by its path in the sources. */
export function built<T>(path: string): Promise<T> {
  return import(pathToFileURL(join(compiledModules(), path)).href) as Promise<T>;
}
