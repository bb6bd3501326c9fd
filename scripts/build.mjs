/** Compiles src/ into dist/ from scratch, so that a deleted source does not remain in the package. Adds generated
 *  files: the page of the viewer, and the help that names every command.
 *  Does nothing if dist/ was built from the same sources. */
import { spawnSync } from "node:child_process";
import { chmodSync, copyFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { forgetBuilt, isBuilt, noteBuilt } from "./build-stamp.mjs";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
process.chdir(root);
if (isBuilt(root)) process.exit(0);
const { bundle } = await import("./bundle.mjs");
forgetBuilt(root);
rmSync("dist", { recursive: true, force: true });
const tsc = join(dirname(createRequire(import.meta.url).resolve("typescript/package.json")), "bin", "tsc");
const { status } = spawnSync(process.execPath, [tsc, "-p", "tsconfig.build.json"], { stdio: "inherit" });
if (status !== 0) process.exit(status ?? 1);
await bundle(join(root, "dist"));
for (const file of ["learn/tensor/kernels.wasm"]) copyFileSync(`src/${file}`, `dist/${file}`);
chmodSync("dist/cli/main.js", 0o755);
const help = spawnSync(process.execPath, ["dist/cli/main.js", "--help"], {
  stdio: ["ignore", "pipe", "inherit"],
});
if (help.status !== 0) process.exit(help.status ?? 1);
writeFileSync("dist/cli/help.txt", help.stdout);
await import("./build-viewer.mjs");
noteBuilt(root);
