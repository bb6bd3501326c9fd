/** Builds a server for some tests, benchmarks and campaigns from its Go module into .cache/servers.
 *  In: the name of the program; Go on the PATH or in /usr/local/go. Out: .cache/servers/NAME.
 *  Exit 1 if the build fails. */
import { spawnSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { GO_SERVERS, goProgram, serverFolder } from "./servers.mjs";

const say = (line) => process.stderr.write(`${line}\n`);

const program = process.argv[2];
const module = GO_SERVERS[program];
if (module === undefined) {
  say(`usage: node scripts/setup-server.mjs <${Object.keys(GO_SERVERS).join("|")}>`);
  process.exitCode = 2;
} else process.exitCode = build(module);

function build(module) {
  const go = goProgram();
  if (go === undefined) {
    say(
      `${program} is built with Go, which is not here. Install Go 1.25 or later, or put ${program} on the PATH.`,
    );
    return 1;
  }
  mkdirSync(serverFolder, { recursive: true });
  say(`Building ${module}; this takes some minutes.`);
  const { status } = spawnSync(go, ["install", module], {
    stdio: ["ignore", "inherit", "inherit"],
    env: { ...process.env, GOBIN: serverFolder, GOFLAGS: "-mod=mod", CGO_ENABLED: "0" },
  });
  return status === 0 ? 0 : 1;
}
