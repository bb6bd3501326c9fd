/** The Python that runs rollbook_torch in tests:
 *  ROLLBOOK_TORCH, else the Python of `npm run interop -- torch`. Installs nothing. */
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

const installed = fileURLToPath(new URL("../.cache/interop-train/bin/python", import.meta.url));
export const torchPython = process.env.ROLLBOOK_TORCH ?? installed;

export function hasTorch() {
  if (process.env.ROLLBOOK_TORCH === undefined && !existsSync(installed)) return false;
  const find = "import importlib.util as u, sys; sys.exit(not all(map(u.find_spec, sys.argv[1:])))";
  return spawnSync(torchPython, ["-c", find, "torch", "transformers", "safetensors"]).status === 0;
}
