/** Completes package-lock.json after `npm install`. If a registry lacks the builds of some packages for other
 *  platforms, npm leaves them out of the lockfile, and `npm ci` then refuses that lockfile everywhere.
 *  In: package-lock.json. Out: the same file with one entry for each absent optional platform package, at the exact
 *  version that its parent requests. Such an entry has no integrity, because the registry could not provide it.
 *  `--check` changes nothing and exits 1 if an entry is absent. */
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const OS = [
  "aix",
  "android",
  "darwin",
  "freebsd",
  "linux",
  "netbsd",
  "openbsd",
  "openharmony",
  "sunos",
  "win32",
];
const CPU = ["arm", "arm64", "ia32", "loong64", "mips64el", "ppc64", "riscv64", "s390x", "wasm32", "x64"];

const file = fileURLToPath(new URL("../package-lock.json", import.meta.url));
const lock = JSON.parse(readFileSync(file, "utf8"));
const absent = absentOptionals(lock.packages);

if (absent.length === 0) process.exit(0);
if (process.argv.includes("--check")) {
  console.error(`package-lock.json lacks ${absent.map(({ name }) => name).join(", ")}.`);
  console.error("`npm ci` would refuse it. Run: node scripts/complete-lock.mjs");
  process.exit(1);
}
for (const { name, version, dev } of absent) {
  const { cpu, libc, os } = platformOf(name);
  // In npm's own field order, so that the next `npm install` changes nothing; undefined fields are not written.
  lock.packages[`node_modules/${name}`] = { version, cpu, dev, libc, optional: true, os };
}
lock.packages = Object.fromEntries(
  Object.entries(lock.packages).sort(([a], [b]) => a.localeCompare(b, "en")),
);
writeFileSync(file, `${JSON.stringify(lock, null, 2)}\n`);
console.error(`package-lock.json: added ${absent.length} optional packages of other platforms.`);

function absentOptionals(packages) {
  const found = [];
  for (const [parent, entry] of Object.entries(packages)) {
    for (const [name, version] of Object.entries(entry.optionalDependencies ?? {})) {
      if (!resolves(packages, parent, name)) found.push({ name, version, dev: entry.dev });
    }
  }
  return found;
}

/** Node's own lookup: the parent's node_modules, then each folder above it. */
function resolves(packages, parent, name) {
  for (
    let folder = parent;
    ;
    folder = folder.slice(0, Math.max(0, folder.lastIndexOf("node_modules/") - 1))
  ) {
    if (packages[`${folder}${folder && "/"}node_modules/${name}`] !== undefined) return true;
    if (folder === "") return false;
  }
}

/** npm skips a package for another os, cpu or libc; the package's name states them. */
function platformOf(name) {
  const words = name.split(/[/-]/);
  const os = words.filter((word) => OS.includes(word));
  const cpu = words.filter((word) => CPU.includes(word));
  const libc = words.includes("musl") ? ["musl"] : words.includes("gnu") ? ["glibc"] : undefined;
  if (cpu.length !== 1) throw new Error(`${name}: cannot tell its platform; add its lock entry by hand.`);
  return { cpu, libc, os: os.length > 0 ? os : undefined };
}
