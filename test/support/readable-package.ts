/** A copy of the built package that every user can read, because other users cannot read a checkout in a private
 *  directory. Out: a folder that holds dist/ and the dependencies of package.json. Does not build. */
import { chmodSync, cpSync, existsSync, mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export function copyPackage(): string {
  if (!existsSync("dist/cli/main.js")) throw new Error("dist/ is missing. Run: npm run build");
  const folder = mkdtempSync(join(tmpdir(), "rollbook-readable-"));
  chmodSync(folder, 0o755);
  for (const path of ["package.json", "dist", ...dependencies()])
    cpSync(path, join(folder, path), { recursive: true, dereference: true });
  return folder;
}

/** The installed packages except development tools, including transitive dependencies. */
function dependencies(): string[] {
  const { packages } = JSON.parse(readFileSync("package-lock.json", "utf8"));
  return Object.keys(packages).filter(
    (path) => path !== "" && packages[path].dev !== true && existsSync(path),
  );
}
