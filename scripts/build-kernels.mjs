/** Compiles kernels/ (AssemblyScript) into src/learn/tensor/kernels.wasm; `--out FILE` writes to another file.
 *  The .wasm is committed, so installing and building the package needs no compiler. A test compares the two. */
import { spawnSync } from "node:child_process";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const asc = join(
  dirname(createRequire(import.meta.url).resolve("assemblyscript/package.json")),
  "bin",
  "asc.js",
);
const flag = process.argv.indexOf("--out");
const out = flag < 0 ? "src/learn/tensor/kernels.wasm" : process.argv[flag + 1];
const options = ["-O3", "--enable", "simd", "--runtime", "stub", "--noAssert", "--importMemory"];
const { status } = spawnSync(process.execPath, [asc, "kernels/index.ts", "--outFile", out, ...options], {
  cwd: root,
  stdio: "inherit",
});
process.exit(status ?? 1);
