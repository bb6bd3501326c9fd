import { hasObstore } from "../python.mjs";

export const name = "Python with zarr 3 and obstore";
export const packages = ["python3-venv"];
export const command = ["node", "scripts/setup-python.mjs"];
export const remedy = "run: node scripts/setup-python.mjs (or set ROLLBOOK_PYTHON)";
export const check = hasObstore;
