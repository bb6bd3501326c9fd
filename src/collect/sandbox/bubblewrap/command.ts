/** Builds the command line of the sandbox: enter the cgroup, drop to an unprivileged user, and run bwrap. bwrap mounts
 *  read-only system directories, the task's files and one small writable /tmp.
 *  In: task and paths. Out: argv and the file descriptors it expects. Pure: starts nothing, touches nothing. */
import { existsSync, lstatSync, readlinkSync } from "node:fs";
import { closeAbove, SHELL } from "../descriptors.ts";
import { programArgv } from "../ending.ts";
import { CLEAN_ENV, type Limits, type Program, type SandboxTask } from "../sandbox.ts";

/** Descriptors above stdin, stdout and stderr, in the order of the spawn's stdio. */
export const FD = { outputs: 3, seccomp: 4, status: 5 } as const;

export const TASK_UID = 65534;
/** Path of the host's Node inside the sandbox. */
const NODE_INSIDE = "/run/rollbook/node";
export const PYTHON = "/usr/bin/python3";

/** Number of our own members of the cgroup: bwrap outside, the runner inside, and one helper of the runner. */
export const OWN_PIDS = 3;

export interface Paths {
  readonly bwrap: string;
  readonly setpriv: string;
  readonly procsFiles: readonly string[];
  readonly taskDirectory: string;
  /** Holds passwd and group for the sandbox. */
  readonly etcDirectory: string;
}

export function sandboxArgv(task: SandboxTask, paths: Paths): string[] {
  const { program, limits } = task;
  const outputs = program.outputs ?? [];
  return [
    ...[...SHELL, ENTER, "sh", String(paths.procsFiles.length), ...paths.procsFiles],
    ...ulimits(limits),
    // Root keeps its capabilities through bwrap and ignores several limits, so drop root before entering.
    ...(process.getuid?.() === 0 ? dropRoot(paths.setpriv) : []),
    ...[paths.bwrap, ...NAMESPACES, ...environment(program), ...fileSystem(limits, paths)],
    ...["--", "/bin/sh", "-c", RUN, "sh", String(limits.filesBytes + 1), String(outputs.length), ...outputs],
    ...programArgv(program, { node: NODE_INSIDE, python: PYTHON }),
  ];
}

/** Text for `sh -c`. $1 = number of cgroup.procs files, then the files, then two limits, then the command. */
const ENTER = [
  closeAbove(FD.status),
  "n=$1; shift",
  'while [ "$n" -gt 0 ]; do echo 0 > "$1" || exit 125; shift; n=$((n-1)); done',
  'ulimit -c 0; ulimit -n 256; ulimit -f "$1"; ulimit -t "$2"; shift 2',
  'exec "$@"',
].join("\n");

/** Process 1 inside the sandbox. It runs the program as an ordinary child, so that signals work as usual. It then sends
 *  the requested files, one base64 line each, and exits with the program's status. Processes that the program left
 *  behind die with process 1. $1 = byte limit, $2 = number of outputs, then the outputs, then the program. */
const RUN = [
  "max=$1; n=$2; shift 2",
  'i=0; while [ "$i" -lt "$n" ]; do eval "out_$i=\\$1"; shift; i=$((i+1)); done',
  // Messages of the runner's shell ("Killed") are not the program's output, so they are discarded.
  'exec 4>&2 2>/dev/null; (exec 2>&4 3>&- 4>&-; exec "$@")',
  "code=$?",
  'i=0; while [ "$i" -lt "$n" ]; do eval "path=/tmp/\\$out_$i"',
  'if [ -f "$path" ]; then printf = >&3; head -c "$max" < "$path" | base64 -w 0 >&3; fi; echo >&3; i=$((i+1)); done',
  "exit $code",
].join("\n");

const NAMESPACES = [
  "--unshare-all",
  "--unshare-user",
  "--disable-userns",
  "--uid",
  String(TASK_UID),
  "--gid",
  String(TASK_UID),
  ...["--as-pid-1", "--die-with-parent", "--new-session", "--hostname", "sandbox", "--cap-drop", "ALL"],
  ...["--seccomp", String(FD.seccomp), "--json-status-fd", String(FD.status), "--clearenv"],
];

function dropRoot(setpriv: string): string[] {
  const id = String(TASK_UID);
  return [setpriv, "--reuid", id, "--regid", id, "--clear-groups", "--no-new-privs", "--"];
}

function ulimits(limits: Limits): string[] {
  // File size in blocks of 512 bytes. CPU seconds are a second limit besides the wall clock.
  const blocks = Math.ceil(limits.scratchBytes / 512);
  return [String(blocks), String(Math.ceil(limits.timeoutMs / 1000) * Math.ceil(limits.cpus) + 1)];
}

function environment(program: Program): string[] {
  return Object.entries({ ...CLEAN_ENV, ...program.env }).flatMap(([key, value]) => ["--setenv", key, value]);
}

function fileSystem(limits: Limits, paths: Paths): string[] {
  return [
    ...SYSTEM,
    ...["--ro-bind", paths.etcDirectory, "/etc"],
    ...["--proc", "/proc", "--dev", "/dev", "--size", String(limits.scratchBytes), "--tmpfs", "/tmp"],
    ...["--ro-bind", paths.taskDirectory, "/task", "--ro-bind", process.execPath, NODE_INSIDE],
    ...["--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/task"],
  ];
}

/** /usr and the directories beside it, which are links into /usr on merged systems. */
const SYSTEM: readonly string[] = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"].flatMap(
  (path) => {
    if (!existsSync(path)) return [];
    return lstatSync(path).isSymbolicLink()
      ? ["--symlink", readlinkSync(path), path]
      : ["--ro-bind", path, path];
  },
);
