import { hasManifestValidators } from "../python.mjs";

export const name = "Python with validators of Kubernetes and compose files";
export const packages = ["python3-venv"];
export const command = ["node", "scripts/setup-python.mjs"];
export const remedy = "run: node scripts/setup-python.mjs (or set ROLLBOOK_PYTHON)";
export const check = hasManifestValidators;
