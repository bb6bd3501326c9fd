/** Selects the Python for comparisons: ROLLBOOK_PYTHON, else .cache/python. Installs nothing. */
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { goProgram, serverPath } from "./servers.mjs";

/** An S3 server for machines that do not have versitygw and cannot build it. */
const MOTO = ["moto[s3]==5.2.5", "flask==3.1.3", "flask-cors==6.0.5"];

export const PINNED = [
  "zarr==3.1.6",
  "obstore==0.12.1",
  "numpy==2.4.6",
  "xarray==2026.9.0",
  "safetensors==0.8.0",
  "pyarrow==26.0.1",
  "zstandard==0.25.0",
  "flit_core==4.2.0",
  "mypy==2.4.1",
  "duckdb==2.0.0",
  "polars==2.1.0",
  "datasets==5.2.0",
  "kubernetes-validate==1.37.0",
  "check-jsonschema==0.39.0",
  ...(serverPath("versitygw") === undefined && goProgram() === undefined ? MOTO : []),
];
export const venvPython = fileURLToPath(new URL("../.cache/python/bin/python", import.meta.url));
export const python = process.env.ROLLBOOK_PYTHON ?? venvPython;

/** True if this Python has zarr ≥ 3, numpy, xarray and safetensors. Reads their versions without importing them. */
export function hasZarr() {
  const versions = versionsOf(python, ["zarr", "numpy", "xarray", "safetensors"]);
  return versions !== undefined && Number.parseInt(versions.zarr, 10) >= 3;
}

/** True if this Python opens Zarr stores in a bucket. */
export function hasObstore() {
  return hasZarr() && versionsOf(python, ["obstore"]) !== undefined;
}

/** True if this Python has pyarrow, numpy and safetensors. */
export function hasArrow() {
  return versionsOf(python, ["pyarrow", "numpy", "safetensors"]) !== undefined;
}

/** True if this Python can build and check the package in python/: its tools beside numpy and pyarrow. */
export function hasPackageTools() {
  return versionsOf(python, ["numpy", "pyarrow", "zstandard", "flit_core", "mypy"]) !== undefined;
}

/** True if this Python has the readers of trainers' files: pyarrow, DuckDB, polars and datasets. */
export function hasReaders() {
  return versionsOf(python, ["pyarrow", "duckdb", "polars", "datasets"]) !== undefined;
}

/** True if this Python validates Kubernetes objects and compose files. Both packages include the schemas. */
export function hasManifestValidators() {
  return versionsOf(python, ["kubernetes-validate", "check-jsonschema"]) !== undefined;
}

/** True if this Python has moto, an S3 server. */
export function hasMoto() {
  return versionsOf(python, ["moto", "flask", "flask-cors"]) !== undefined;
}

/** @param {string} program */
export function hasPinned(program) {
  const pins = PINNED.map((pin) => pin.replace(/\[.*\]/, "").split("=="));
  const versions = versionsOf(
    program,
    pins.map(([name]) => name),
  );
  return versions !== undefined && pins.every(([name, version]) => versions[name] === version);
}

/** Undefined if a package is absent. */
function versionsOf(program, packages) {
  if (!existsSync(program)) return undefined;
  const code =
    "import json,sys,importlib.metadata as m;print(json.dumps({n:m.version(n) for n in sys.argv[1:]}))";
  const { status, stdout } = spawnSync(program, ["-c", code, ...packages], { encoding: "utf8" });
  return status === 0 ? JSON.parse(stdout) : undefined;
}
