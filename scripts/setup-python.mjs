/** Makes the Python for the comparisons of some tests and benchmarks: a virtual environment in .cache/python with the
 *  versions that scripts/python.mjs pins. Idempotent: does nothing if the pinned versions are installed.
 *  In: a python3 ≥ 3.11 with venv on the PATH. Out: .cache/python. Exit 1 if it cannot be made. */
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { hasPinned, PINNED, venvPython } from "./python.mjs";

const PIP = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"];

if (hasPinned(venvPython)) {
  process.stderr.write(`${venvPython} has ${PINNED.join(", ")} already.\n`);
} else {
  const folder = fileURLToPath(new URL("../.cache/python", import.meta.url));
  process.exitCode =
    // An existing environment is kept, because other processes may use it: pip adds the missing packages.
    run("python3", ["-m", "venv", folder]) ||
    // Python compiles the modules that it imports; most are never imported.
    run(venvPython, [...PIP, ...PINNED]) ||
    (hasPinned(venvPython) ? 0 : 1);
}

function run(program, args) {
  process.stderr.write(`${program} ${args.join(" ")}\n`);
  return spawnSync(program, args, { stdio: ["ignore", "inherit", "inherit"] }).status ?? 1;
}
