/** The built command, which campaigns run as users do. */
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { RollbookError } from "../../src/base/errors.ts";

export const MAIN = fileURLToPath(new URL("../../dist/cli/main.js", import.meta.url));

export function requireBuild(): void {
  if (!existsSync(MAIN))
    throw new RollbookError("no-build", { path: MAIN }, "dist/ is missing. Run: npm run build");
}
