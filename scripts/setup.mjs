/** Set-up for a fresh machine, called by `npm test` and `npm run demo`.
 *  In: `test` or `demo`, and the requirements in scripts/setup/*.mjs. Each exports { name, packages, check() }: the
 *  suite it serves, its Debian packages, and a check of this machine. It may export a command to run after the
 *  packages. Out: as root on Debian, the missing packages are installed. Elsewhere it prints the skipped suites and how
 *  to enable them. Exit 1 if something is missing and skipping is forbidden (CI=true or ROLLBOOK_REQUIRE_ALL=1).
 *  ROLLBOOK_NO_SETUP=1 forbids installing. The demo needs nothing. */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync } from "node:fs";
import { planSetUp } from "./setup-plan.mjs";

const ROOT = new URL("..", import.meta.url);
const FOLDER = new URL("./setup/", import.meta.url);
const BUILD = ["node", "scripts/build.mjs"];
const say = (line) => process.stderr.write(`${line}\n`);

const job = process.argv[2];
if (job === "test") process.exitCode = await setUpTests();
else if (job !== "demo") {
  say("usage: node scripts/setup.mjs <test|demo>");
  process.exitCode = 2;
}

async function setUpTests() {
  const requirements = await loadRequirements();
  const machine = {
    isDebian: existsSync("/etc/debian_version"),
    isRoot: process.getuid?.() === 0,
    mayInstall: process.env.ROLLBOOK_NO_SETUP !== "1",
    requireAll: process.env.CI === "true" || process.env.ROLLBOOK_REQUIRE_ALL === "1",
  };
  let plan = planSetUp(await missingOf(requirements), machine);
  plan.lines.forEach(say);
  if (plan.packages.length + plan.commands.length > 0) {
    if (plan.packages.length > 0) aptInstall(plan.packages);
    // In parallel, together with the build that the tests need next: one waits for the network while another compiles.
    await Promise.all([...plan.commands, BUILD].map(runCommand));
    plan = planSetUp(await missingOf(requirements), { ...machine, mayInstall: false });
    plan.lines.forEach(say);
  }
  return plan.exitCode;
}

async function loadRequirements() {
  const files = readdirSync(FOLDER).filter((file) => file.endsWith(".mjs"));
  return Promise.all(files.sort().map((file) => import(new URL(file, FOLDER).href)));
}

async function missingOf(requirements) {
  const ready = await Promise.all(requirements.map((requirement) => requirement.check()));
  return requirements.filter((_, i) => !ready[i]);
}

/** Installs with the existing package lists. A fresh image has none, so they are fetched if the first try fails. */
function aptInstall(packages) {
  const apt = (...args) =>
    spawnSync("apt-get", args, {
      stdio: ["ignore", "ignore", "inherit"],
      env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" },
    }).status === 0;
  const install = () => apt("install", "-y", "-qq", "--no-install-recommends", ...packages);
  if (install()) return;
  say("Fetching the package lists: apt-get update");
  if (!apt("update", "-qq") || !install()) say("apt-get failed; its messages stand above.");
}

async function runCommand([program, ...args]) {
  const child = spawn(program, args, { cwd: ROOT, stdio: ["ignore", "inherit", "inherit"] });
  const [status] = await once(child, "exit").catch(({ message }) => [message]);
  if (status !== 0) say(`${program} ${args.join(" ")} failed; its messages stand above.`);
}
