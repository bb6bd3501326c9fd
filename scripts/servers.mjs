/** Servers that tests, benchmarks and campaigns start: one on the PATH, else the one that the set-up built in
 *  .cache/servers. In: the name of a program. Out: its path. Starts and installs nothing. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { onPath } from "./on-path.mjs";

export const serverFolder = fileURLToPath(new URL("../.cache/servers", import.meta.url));

/** Go modules, pinned, by the program that they build. */
export const GO_SERVERS = {
  "nats-server": "github.com/nats-io/nats-server/v2@v2.15.2",
  versitygw: "github.com/versity/versitygw/cmd/versitygw@v1.8.0",
};

/** The one that was built here comes first: its version is pinned. Undefined where there is none.
 *  @param {keyof typeof GO_SERVERS} program */
export function serverPath(program) {
  const built = join(serverFolder, program);
  if (existsSync(built)) return built;
  return onPath(program) ? program : undefined;
}

/** Go's own place comes after the PATH. Undefined where Go is absent. */
export function goProgram() {
  if (onPath("go")) return "go";
  return ["/usr/local/go/bin/go", "/usr/lib/go/bin/go"].find((file) => existsSync(file));
}
