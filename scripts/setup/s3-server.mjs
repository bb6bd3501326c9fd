import { hasMoto } from "../python.mjs";

export const name = "S3 server (moto)";
export const packages = ["python3-venv"];
export const command = ["node", "scripts/setup-python.mjs"];
export const remedy = "run: node scripts/setup-python.mjs (or set ROLLBOOK_PYTHON)";
export const check = hasMoto;
