/** Builds the Python package: a wheel and a source archive, as PyPI accepts them.
 *  In: python/, and a Python with flit_core (scripts/setup-python.mjs makes one). Out: both files in the given folder,
 *  or in dist/python. Exit 1 if the build fails. */
import { spawnSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { python } from "./python.mjs";

const source = fileURLToPath(new URL("../python", import.meta.url));
const out = resolve(process.argv[2] ?? fileURLToPath(new URL("../dist/python", import.meta.url)));
mkdirSync(out, { recursive: true });
const code =
  "import sys; from flit_core import buildapi as b; print(b.build_wheel(sys.argv[1])); print(b.build_sdist(sys.argv[1]))";
const { status } = spawnSync(python, ["-c", code, out], { cwd: source, stdio: "inherit" });
process.exitCode = status ?? 1;
