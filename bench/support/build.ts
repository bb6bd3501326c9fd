/** The build: campaigns and benchmarks run it as users do. The sources through tsx are a fifth slower. */
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { RollbookError } from "../../src/base/errors.ts";

export const MAIN = fileURLToPath(new URL("../../dist/cli/main.js", import.meta.url));

export function requireBuild(): void {
  if (!existsSync(MAIN))
    throw new RollbookError("no-build", { path: MAIN }, "dist/ is missing. Run: npm run build");
}

/** The folder of the compiled modules. */
export const MODULES = fileURLToPath(new URL("../../dist", import.meta.url));

/** A compiled module, by its path in the build. */
export function built<T>(path: string): Promise<T> {
  requireBuild();
  return import(new URL(`../../dist/${path}`, import.meta.url).href) as Promise<T>;
}
