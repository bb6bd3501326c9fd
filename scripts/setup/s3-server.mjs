import { hasMoto } from "../python.mjs";
import { goProgram, serverPath } from "../servers.mjs";

const canBuild = goProgram() !== undefined;

/** moto is used if versitygw cannot be built. */
export const name = "S3 server (versitygw, or moto without Go)";
export const packages = canBuild ? [] : ["python3-venv"];
export const command = [
  "node",
  ...(canBuild ? ["scripts/setup-server.mjs", "versitygw"] : ["scripts/setup-python.mjs"]),
];
export const remedy = `run: ${command.join(" ")}`;
export const check = () => serverPath("versitygw") !== undefined || hasMoto();
