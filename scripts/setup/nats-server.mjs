import { onPath } from "../on-path.mjs";
import { serverPath } from "../servers.mjs";

export const name = "nats-server";
/** openssl makes the certificates of the tests with TLS. */
export const packages = ["openssl"];
export const command = ["node", "scripts/setup-server.mjs", "nats-server"];
export const remedy =
  "install openssl and run: node scripts/setup-server.mjs nats-server (needs Go; or put nats-server on the PATH)";
export const check = () => serverPath("nats-server") !== undefined && onPath("openssl");
