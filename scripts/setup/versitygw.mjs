import { serverPath } from "../servers.mjs";

export const name = "S3 server (versitygw)";
export const packages = [];
export const command = ["node", "scripts/setup-server.mjs", "versitygw"];
export const remedy = "run: node scripts/setup-server.mjs versitygw (needs Go; or put versitygw on the PATH)";
export const check = () => serverPath("versitygw") !== undefined;
