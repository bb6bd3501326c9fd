/** Servers that tests, benchmarks and campaigns start: the server built by the set-up in .cache/servers, else the one
 *  on the PATH. In: the name of a program. Out: its path. Starts and installs nothing. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { onPath } from "./on-path.mjs";

export const serverFolder = fileURLToPath(new URL("../.cache/servers", import.meta.url));

/** Pinned Go modules, by the program that they build. */
export const GO_SERVERS = {
  "nats-server": "github.com/nats-io/nats-server/v2@v2.15.2",
  versitygw: "github.com/versity/versitygw/cmd/versitygw@v1.8.0",
};

/** The server built here comes first, because its version is pinned. Undefined if there is none.
 *  @param {keyof typeof GO_SERVERS} program */
export function serverPath(program) {
  const built = join(serverFolder, program);
  if (existsSync(built)) return built;
  return onPath(program) ? program : undefined;
}

/** The PATH comes before Go's default folders. Undefined if Go is absent. */
export function goProgram() {
  if (onPath("go")) return "go";
  return ["/usr/local/go/bin/go", "/usr/lib/go/bin/go"].find((file) => existsSync(file));
}
