/** Checks if dist/ is up to date. A build writes the digests of its inputs and outputs to .cache/build.json; dist/ is
 *  up to date while both are unchanged. An edited source, other packages and a damaged dist/ all change a digest. */
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

/** Inputs of the build. package-lock.json identifies the compiler and the packages. */
const FOLDERS = ["src", "viewer"];
const FILES = [
  ...["package.json", "package-lock.json", "tsconfig.json", "tsconfig.build.json"],
  ...["build.mjs", "build-stamp.mjs", "build-viewer.mjs", "bundle.mjs"].map((name) => join("scripts", name)),
];

const stampOf = (root) => join(root, ".cache", "build.json");

/** `root`: the folder of the repository. */
export function isBuilt(root) {
  return existsSync(stampOf(root)) && readFileSync(stampOf(root), "utf8") === describe(root);
}

/** Removes the stamp. Call it at the start of a build, so that a failed build never counts as complete. */
export function forgetBuilt(root) {
  rmSync(stampOf(root), { force: true });
}

export function noteBuilt(root) {
  mkdirSync(dirname(stampOf(root)), { recursive: true });
  writeFileSync(stampOf(root), describe(root));
}

function describe(root) {
  const sources = FOLDERS.flatMap((folder) => filesBelow(root, folder));
  const read = [...FILES, ...sources.filter((path) => !path.endsWith(".test.ts"))];
  const digests = { read: digestOf(root, read), written: digestOf(root, filesBelow(root, "dist")) };
  return `${JSON.stringify({ node: process.version, ...digests })}\n`;
}

function filesBelow(root, folder) {
  if (!existsSync(join(root, folder))) return [];
  const entries = readdirSync(join(root, folder), { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name).slice(root.length + 1));
}

function digestOf(root, paths) {
  const hash = createHash("sha256");
  for (const path of [...paths].sort())
    hash.update(`${path}\0`).update(
      createHash("sha256")
        .update(readFileSync(join(root, path)))
        .digest(),
    );
  return hash.digest("hex");
}
