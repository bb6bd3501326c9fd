/** The image for tasks. With a registry it is built from sim/Dockerfile. Without a registry it is made here, from this
 *  machine's own programs and their libraries, and imported.
 *  In: a daemon and a reference. Out: nothing; the image exists afterwards, or a typed error is thrown. */
import { spawn, spawnSync } from "node:child_process";
import {
  chmodSync,
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import { RollbookError } from "../../../base/index.ts";
import type { DockerClient } from "./client.ts";

/** Folder of the Dockerfile, in the package and in a clone. */
const BUILD_CONTEXT = fileURLToPath(new URL("../../../../sim", import.meta.url));

/** Programs in /usr/bin for tasks, besides node. */
const PROGRAMS = `
  sh awk base64 basename cat chmod comm cp cut date dd diff dirname du env expr find grep head id ln
  ls mkdir mkfifo mktemp mv od paste printf python3 readlink rm rmdir sed seq setsid sha256sum sleep
  sort stat tail tar tee touch tr true false uname uniq wc xargs yes`
  .trim()
  .split(/\s+/);

export async function ensureImage(client: DockerClient, image: string): Promise<void> {
  if (await hasImage(client, image)) return;
  await importImage(client, image);
}

async function hasImage(client: DockerClient, image: string): Promise<boolean> {
  return (
    (await client.call("GET", `/images/${encodeURIComponent(image)}/json`, { expect: [404] })) !== undefined
  );
}

/** Makes a root file system of this machine's programs and imports it as `image`. Needs no network. */
export async function importImage(client: DockerClient, image: string): Promise<void> {
  const root = mkdtempSync(join(tmpdir(), "rollbook-rootfs-"));
  try {
    fillRoot(root);
    const [repo, tag] = image.split(":");
    await client.upload(`/images/create?fromSrc=-&repo=${repo}&tag=${tag ?? "latest"}`, tarOf(root));
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
  if (!(await hasImage(client, image))) throw noImage(image, "the daemon did not keep it");
}

function fillRoot(root: string): void {
  for (const folder of ["usr/bin", "usr/lib", "usr/lib64", "etc", "tmp", "task", "proc", "dev", "sys"])
    mkdirSync(join(root, folder), { recursive: true });
  // The runtime gives the mounted /tmp the mode of this directory.
  chmodSync(join(root, "tmp"), 0o1777);
  for (const [link, target] of [
    ["bin", "usr/bin"],
    ["sbin", "usr/bin"],
    ["lib", "usr/lib"],
    ["lib64", "usr/lib64"],
  ] as const)
    symlinkSync(target, join(root, link));
  writeFileSync(join(root, "etc/passwd"), "root:x:0:0::/:/bin/sh\nnobody:x:65534:65534::/tmp:/bin/sh\n");
  writeFileSync(join(root, "etc/group"), "root:x:0:\nnogroup:x:65534:\n");
  const binaries = new Map([["node", process.execPath]]);
  for (const name of PROGRAMS)
    if (existsSync(`/usr/bin/${name}`)) binaries.set(name, realpathSync(`/usr/bin/${name}`));
  const loaded = [...binaries.values()];
  for (const [name, path] of binaries) copyFileSync(path, join(root, "usr/bin", name));
  if (binaries.has("python3")) loaded.push(...copyPython(root));
  for (const library of librariesOf(loaded)) copyLibrary(root, library);
}

/** Copies the standard library without its tests. Returns the extension modules that it loads. */
function copyPython(root: string): string[] {
  const told = spawnSync(
    "/usr/bin/python3",
    ["-c", "import sysconfig; print(sysconfig.get_path('stdlib'))"],
    { encoding: "utf8" },
  );
  const stdlib = told.stdout.trim();
  const left = new Set(
    "test idlelib ensurepip lib2to3 tkinter turtledemo __pycache__ dist-packages".split(" "),
  );
  cpSync(stdlib, join(root, stdlib), {
    recursive: true,
    dereference: true,
    filter: (source) => !left.has(source.slice(stdlib.length + 1).split("/")[0]!) && existsSync(source),
  });
  const dynamic = join(stdlib, "lib-dynload");
  return readdirSync(dynamic).map((name) => join(dynamic, name));
}

function librariesOf(binaries: readonly string[]): Set<string> {
  const { stdout } = spawnSync("ldd", [...binaries], {
    encoding: "utf8",
    env: { LC_ALL: "C", PATH: "/usr/bin:/bin" },
    maxBuffer: 1 << 26,
  });
  return new Set([...(stdout ?? "").matchAll(/(\/\S+\.so\S*) \(0x/g)].map((match) => match[1]!));
}

function copyLibrary(root: string, library: string): void {
  // /lib and /lib64 are links into /usr, in the image as on the host.
  const place = join(root, library.startsWith("/usr/") ? library : `/usr${library}`);
  mkdirSync(dirname(place), { recursive: true });
  copyFileSync(realpathSync(library), place);
}

/** A tar stream of a folder, owned by root. */
export function tarOf(folder: string): Readable {
  const tar = spawn("tar", ["-C", folder, "--numeric-owner", "--owner=0", "--group=0", "-c", "."], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  tar.on("error", (cause) => tar.stdout.destroy(cause));
  return tar.stdout;
}

function noImage(image: string, why: string): RollbookError {
  return new RollbookError(
    "sandbox-no-image",
    { image, why },
    `the image ${image} could not be made: ${why}. Build it: docker build -t ${image} ${BUILD_CONTEXT}`,
  );
}
