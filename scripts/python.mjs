/** Which Python with zarr 3 this checkout has: the one of ROLLBOOK_PYTHON, else .cache/python. Installs nothing. */
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

export const PINNED = ["zarr==3.1.6", "numpy==2.4.6", "xarray==2026.9.0", "safetensors==0.8.0"];
export const venvPython = fileURLToPath(new URL("../.cache/python/bin/python", import.meta.url));
export const python = process.env.ROLLBOOK_PYTHON ?? venvPython;

/** Whether this Python has zarr ≥ 3, numpy, xarray and safetensors; asks for their versions without importing them. */
export function hasZarr() {
  const versions = versionsOf(python);
  return versions !== undefined && Number.parseInt(versions.zarr, 10) >= 3;
}

/** @param {string} program */
export function hasPinned(program) {
  const versions = versionsOf(program);
  return (
    versions !== undefined &&
    PINNED.every((pin) => pin === `${pin.split("==")[0]}==${versions[pin.split("==")[0]]}`)
  );
}

function versionsOf(program) {
  if (!existsSync(program)) return undefined;
  const code =
    "import json,importlib.metadata as m;print(json.dumps({n:m.version(n) for n in('zarr','numpy','xarray','safetensors')}))";
  const { status, stdout } = spawnSync(program, ["-c", code], { encoding: "utf8" });
  return status === 0 ? JSON.parse(stdout) : undefined;
}
