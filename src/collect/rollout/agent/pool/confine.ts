/** The view of the host that the process of an agent gets: system programs, its own project, its modules, the network.
 *  It sees no other files or processes of this user. In: the agent, the paths to hide and to share. Out: a command
 *  line. If bubblewrap does not work, the process is an ordinary process of this user and sees the same files as this
 *  user. */
import { spawnSync } from "node:child_process";
import { existsSync, lstatSync, readdirSync, readlinkSync, realpathSync, statSync } from "node:fs";
import { dirname, join, relative, resolve, sep } from "node:path";
import { RollbookError } from "../../../../base/index.ts";
import { QUEUE_VARIABLES } from "../../../queue/index.ts";
import { closeAbove, SHELL } from "../../../sandbox/index.ts";
import { CHANNEL_FD } from "./wire.ts";

/** `auto`: bubblewrap if it works, else a process. `none`: inside the launcher, for modules only. */
export const ISOLATIONS = ["auto", "bubblewrap", "process", "none"] as const;
export type Isolation = (typeof ISOLATIONS)[number];

export interface Confinement {
  readonly isolation?: Isolation | undefined;
  /** Files and folders that the agent must not see in any location: the book, the tasks, their solutions. */
  readonly hidden?: readonly string[] | undefined;
  /** Paths that the agent may read and write. Its own project is readable without being listed here. */
  readonly shared?: readonly string[] | undefined;
  /** Environment variables to withhold from the agent. Variables of this package are always withheld. */
  readonly hiddenEnv?: readonly string[] | undefined;
}

const PLACES = ["/usr/bin", "/bin", "/usr/local/bin"];
const SYSTEM = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix/store"];
/** Names, certificates and the time zone. No passwords and no keys. */
const ETC = [
  "alternatives",
  "ca-certificates",
  "group",
  "gai.conf",
  "host.conf",
  "hosts",
  "ld.so.cache",
  "ld.so.conf",
  "ld.so.conf.d",
  "localtime",
  "mime.types",
  "nsswitch.conf",
  "passwd",
  "pki",
  "protocols",
  "resolv.conf",
  ...["services", "ssl", "timezone"],
].map((name) => `/etc/${name}`);
const NAMESPACES = [
  ...["--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try"],
  ...["--die-with-parent", "--new-session", "--cap-drop", "ALL", "--proc", "/proc", "--dev", "/dev"],
];

/** Builds the command line around `argv`. `channel` keeps descriptor 3 open for the channel. `agent` is the agent's
 *  file. `needs` are additional files that `argv` reads. */
export function confined(
  argv: readonly string[],
  {
    agent,
    needs,
    channel,
    ...confinement
  }: Confinement & { agent: string; needs: readonly string[]; channel: boolean },
): string[] {
  const { isolation = "auto" } = confinement;
  const bwrap = isolation === "auto" || isolation === "bubblewrap" ? findBubblewrap() : undefined;
  if (bwrap === undefined && isolation === "bubblewrap") throw unavailable();
  const view =
    bwrap === undefined
      ? deathWithParent()
      : [bwrap, ...NAMESPACES, ...viewOf(agent, needs, confinement), "--"];
  return [...withoutDescriptors(channel ? CHANNEL_FD : 2), ...view, ...argv];
}

/** Environment of the launcher without the launcher's own variables: an agent must not reach the queue. */
export function environmentFor({ hiddenEnv = [] }: Confinement): NodeJS.ProcessEnv {
  const hidden = new Set<string>([...hiddenEnv, ...QUEUE_VARIABLES]);
  return Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !name.startsWith("ROLLBOOK_") && !hidden.has(name)),
  );
}

let found: { readonly bwrap: string | undefined } | undefined;

/** Undefined if bubblewrap is not installed, or may not create namespaces. */
export function findBubblewrap(): string | undefined {
  found ??= { bwrap: workingBubblewrap() };
  return found.bwrap;
}

function workingBubblewrap(): string | undefined {
  const bwrap = PLACES.map((place) => join(place, "bwrap")).find((path) => existsSync(path));
  if (bwrap === undefined) return undefined;
  const { status } = spawnSync(bwrap, [...NAMESPACES, ...systemBinds(), "--", "/bin/sh", "-c", ":"], {
    stdio: "ignore",
  });
  return status === 0 ? bwrap : undefined;
}

/** /proc lists the open descriptors. Without it we could only close descriptors one by one up to a guessed number. */
function withoutDescriptors(last: number): string[] {
  return existsSync("/proc/self/fd") ? [...SHELL, `${closeAbove(last)}\nexec "$@"`, "sh"] : [];
}

/** Kills an agent in a busy loop when its launcher is killed. */
function deathWithParent(): string[] {
  const setpriv = PLACES.map((place) => join(place, "setpriv")).find((path) => existsSync(path));
  return setpriv === undefined ? [] : [setpriv, "--pdeathsig", "KILL", "--"];
}

/** Folders that hold everything of a user or of all users. Of an agent there, only its file is visible. */
const COMMON = new Set(["/", "/tmp", "/var/tmp", "/home", "/root", process.env.HOME]);

function viewOf(
  agent: string,
  needs: readonly string[],
  { hidden = [], shared = [] }: Confinement,
): string[] {
  const root = projectOf(agent);
  const seen = readableBy(root, needs);
  const writable = shared.map((path) => real(resolve(path)));
  const cwd = process.cwd();
  return [
    ...systemBinds(),
    ...ETC.filter((path) => existsSync(path)).flatMap((path) => ["--ro-bind", path, path]),
    ...["--tmpfs", "/tmp", "--setenv", "HOME", "/tmp", "--setenv", "TMPDIR", "/tmp"],
    ...seen.flatMap((path) => ["--ro-bind", path, path]),
    ...writable.flatMap((path) => ["--bind", path, path]),
    ...hidden
      .map((path) => real(resolve(path)))
      .flatMap((path) => mask(path, [...SYSTEM.map(real), ...seen, ...writable])),
    ...[agent, ...needs].flatMap((path) => ["--ro-bind", path, path]),
    "--chdir",
    [root, ...writable].some((path) => isWithin(cwd, path)) ? cwd : root === agent ? "/tmp" : root,
  ];
}

function systemBinds(): string[] {
  return SYSTEM.flatMap((path) => {
    if (!existsSync(path)) return [];
    return lstatSync(path).isSymbolicLink()
      ? ["--symlink", readlinkSync(path), path]
      : ["--ro-bind", path, path];
  });
}

/** The nearest folder with a package.json, else the agent's own folder. Only the file if that folder is in COMMON. */
function projectOf(agent: string): string {
  const own = dirname(agent);
  for (let folder = own; !COMMON.has(folder) && dirname(folder) !== folder; folder = dirname(folder))
    if (existsSync(join(folder, "package.json"))) return folder;
  return COMMON.has(own) ? agent : own;
}

/** The project, this package, the modules that both may import, and the interpreters. Outer folders come first. */
function readableBy(root: string, needs: readonly string[]): string[] {
  const modules = [root, ...needs].flatMap(moduleFolders);
  const linked = modules.flatMap(linkedPackages);
  const interpreters = [process.execPath, process.env.VIRTUAL_ENV, process.env.CONDA_PREFIX];
  const paths = [root, ...modules, ...linked, ...interpreters].filter(
    (path): path is string => path !== undefined && path !== "" && existsSync(path),
  );
  const apart = [...new Set(paths)].sort((a, b) => a.length - b.length);
  return apart.filter((path, i) => !apart.slice(0, i).some((outer) => isWithin(path, outer)));
}

/** `node_modules` of a folder and of every folder above it, and the compiled code of this package. */
function moduleFolders(from: string): string[] {
  const found: string[] = [];
  for (let folder = from; ; folder = dirname(folder)) {
    for (const name of ["node_modules", "dist"])
      if (name === "node_modules" || existsSync(join(folder, "dist", "cli", "main.js")))
        found.push(join(folder, name));
    // Includes the target of each link: inside the sandbox only the link itself would exist.
    if (dirname(folder) === folder)
      return found.filter((path) => existsSync(path)).flatMap((path) => [path, realpathSync(path)]);
  }
}

/** Packages that are links into other folders, as created by workspaces and `npm link`. */
function linkedPackages(modules: string): string[] {
  const names = readdirSync(modules, { withFileTypes: true });
  const inner = names.flatMap((entry) =>
    entry.name.startsWith("@") && entry.isDirectory()
      ? readdirSync(join(modules, entry.name), { withFileTypes: true }).map((each) =>
          join(modules, entry.name, each.name),
        )
      : [join(modules, entry.name)],
  );
  return inner
    .filter((path) => lstatSync(path).isSymbolicLink() && existsSync(path))
    .map((path) => realpathSync(path))
    .filter((path) => !isWithin(path, real(modules)));
}

function mask(path: string, seen: readonly string[]): string[] {
  if (!existsSync(path) || !seen.some((outer) => isWithin(path, outer))) return [];
  return statSync(path).isDirectory() ? ["--tmpfs", path] : ["--ro-bind", "/dev/null", path];
}

function isWithin(path: string, folder: string): boolean {
  const way = relative(folder, path);
  return way === "" || (way !== ".." && !way.startsWith(`..${sep}`));
}

function real(path: string): string {
  return existsSync(path) ? realpathSync(path) : path;
}

function unavailable(): RollbookError {
  return new RollbookError(
    "no-isolation",
    {},
    "bubblewrap is not installed, or may not make namespaces here. Install it, or use --isolation process.",
  );
}
