/** Attacks by shell and Python, for engines that run real processes. */

import { type Attack, PATIENCE_MS, shell } from "../../../src/collect/sandbox/probe/attack.ts";
import { exits, flags, killed, prints, summary } from "../../../src/collect/sandbox/probe/result-checks.ts";
import type { Witness } from "../../../src/collect/sandbox/probe/witness.ts";
import { textOf } from "../../../src/collect/sandbox/sandbox.ts";
import { hides } from "./hides.ts";

const MIB = 1024 * 1024;

export function processAttacks(witness: Witness): Attack[] {
  return [
    ...resourceAttacks(),
    ...reachAttacks(witness),
    ...signalAttacks(),
    ...leftoverAttacks(),
    ...privilegeAttacks(),
  ];
}

function resourceAttacks(): Attack[] {
  return [
    shell("fork bomb", "processes", "f() { f | f & }; f; f; sleep 1; sleep 1", {
      limits: { pids: 24, timeoutMs: 3_000 },
      fault: (result) =>
        result.pidsExceeded ? undefined : `the process limit did not act: ${summary(result)}`,
    }),
    python("thread bomb", "processes", THREADS, {
      limits: { pids: 24 },
      fault: (result) =>
        flags(result, "pidsExceeded") ??
        (textOf(result.stdout) === "limited\n" ? undefined : `not limited: ${summary(result)}`),
    }),
    python("hog memory with many processes", "memory", HOGS, {
      limits: { memoryBytes: 48 * MIB },
      fault: (result) => (result.outOfMemory ? undefined : "the memory limit did not act"),
    }),
    shell("fill the scratch space", "scratch", "dd if=/dev/zero of=/tmp/big bs=1M count=64 2>/dev/null", {
      limits: { scratchBytes: 4 * MIB },
      fault: (result) => (result.exitCode === 0 ? "64 MiB fitted into 4" : flags(result)),
    }),
    python("make 10 000 files", "scratch", "for i in range(10000): open(f'/tmp/{i}', 'w').close()", {
      fault: (result) => exits(result, 0),
    }),
    shell("spin", "time", "while :; do :; done", {
      limits: { timeoutMs: 300 },
      fault: (result) => flags(result, "timedOut"),
    }),
    shell("ignore the end", "time", "trap '' TERM INT HUP; while :; do sleep 1; done", {
      limits: { timeoutMs: 300 },
      fault: (result) => flags(result, "timedOut") ?? killed(result),
    }),
    shell("flood stdout", "output", "exec yes", {
      limits: { outputBytes: 1000 },
      fault: (result) =>
        flags(result, "outputExceeded") ?? (result.stdout.byteLength === 1000 ? undefined : "not cut"),
    }),
    shell("flood stderr", "output", "exec yes >&2", {
      limits: { outputBytes: 1000 },
      fault: (result) =>
        flags(result, "outputExceeded") ?? (result.stderr.byteLength === 1000 ? undefined : "not cut"),
    }),
  ];
}

function reachAttacks(witness: Witness): Attack[] {
  return [
    shell("see the host's processes", "host-files", "ls /proc | grep -c '^[0-9]'", {
      fault: (result) =>
        Number(textOf(result.stdout)) <= 8 ? exits(result, 0) : "too many processes are visible",
    }),
    shell(
      "read through /proc/1/root",
      "host-files",
      `cat /proc/1/root${witness.secretPath} /proc/1/cwd/../${witness.secretPath} /etc/shadow`,
      {
        fault: (result) => hides(result, witness.secret, "root:") ?? exits(result, 1),
      },
    ),
    shell("plant links where outputs are read", "host-files", LINKS(witness.secretPath), {
      outputs: ["leak", "folder/secret", "pipe", "device", "folder"],
      fault: (result) =>
        hides(result, witness.secret) ??
        exits(result, 0) ??
        (Object.keys(result.files).length === 0 ? undefined : `brought back ${Object.keys(result.files)}`),
    }),
    shell(
      "write through a link",
      "write-outside",
      "ln -s / /tmp/root; echo x > /tmp/root/usr/x || echo x > /tmp/root/task/x",
      {
        fault: (result) => (result.exitCode === 0 ? "the write went through" : flags(result)),
      },
    ),
    python("open strange sockets", "network", SOCKETS, { fault: (result) => prints(result, "[]\n") }),
    python(
      "name other networks",
      "network",
      "print(sorted(l.split(':')[0].strip() for l in open('/proc/net/dev').readlines()[2:]))",
      {
        fault: (result) => prints(result, "['lo']\n"),
      },
    ),
  ];
}

function signalAttacks(): Attack[] {
  return [
    shell("signal everything", "signals", "kill -9 1; kill -STOP 1; kill -9 -1; echo survived", {
      fault: (result) =>
        result.exitCode === null && result.signal === "SIGKILL" ? undefined : exits(result, 0),
    }),
    shell("signal the parent", "signals", "kill -9 $PPID; kill -STOP $PPID; echo alive", {
      fault: (result) => (result.signal === "SIGKILL" ? undefined : prints(result, "alive\n")),
    }),
    shell("die by a signal", "signals", "kill -SEGV $$", {
      fault: (result) =>
        result.signal === "SIGSEGV" && result.exitCode === null
          ? flags(result)
          : "the signal is not reported",
    }),
  ];
}

function leftoverAttacks(): Attack[] {
  return [
    shell(
      "leave a process behind",
      "leftovers",
      "(setsid sleep 300 </dev/null >/dev/null 2>&1 &); (setsid sleep 300 &); exit 0",
      {
        fault: (result) =>
          exits(result, 0) ?? (result.usage.wallMs < PATIENCE_MS / 2 ? undefined : "waited for the orphan"),
      },
    ),
    shell("leave files that resist removal", "leftovers", RESIST, { fault: (result) => exits(result, 0) }),
    shell(
      "find what is left",
      "leftovers",
      "ls -A /tmp | wc -l; ls /proc | grep '^[0-9]' | while read p; do cat /proc/$p/comm; done | grep -c sleep",
      {
        fault: (result) =>
          /^0\s+0\s*$/.test(textOf(result.stdout)) ? undefined : `found ${textOf(result.stdout)}`,
      },
    ),
    python("share memory with the next task", "leftovers", SYSV, {
      fault: (result) => prints(result, "refused\n"),
    }),
  ];
}

function privilegeAttacks(): Attack[] {
  return [
    python("make namespaces, mount, trace", "privilege", KERNEL, {
      fault: (result) => prints(result, "[]\n"),
    }),
  ];
}

function python(
  name: string,
  threat: Attack["threat"],
  source: string,
  options: Parameters<typeof shell>[3],
): Attack {
  const { limits, fault, ...io } = options;
  return {
    ...{ name: `Python: ${name}`, threat, fault },
    program: { ...io, kind: "python", entry: "attack.py" },
    files: { "attack.py": source },
    limits: { timeoutMs: PATIENCE_MS, ...limits },
  };
}

const THREADS = `
import os, threading, time
try:
    for _ in range(200): threading.Thread(target=time.sleep, args=(0.3,), daemon=True).start()
except RuntimeError:
    print("limited", flush=True)
    os._exit(0)
`;

const HOGS = `
import os, time
for _ in range(8):
    if os.fork() == 0:
        held = bytearray(12 << 20)
        for i in range(0, len(held), 4096): held[i] = 1
        time.sleep(2)
        os._exit(0)
for _ in range(8): os.wait()
`;

const LINKS = (secret: string) => `
cd /tmp; ln -s ${secret} leak; ln -s "$(dirname ${secret})" folder; mkfifo pipe; ln -s /dev/zero device`;

const SOCKETS = `
import socket
opened = []
for family in [0] + list(range(3, 10)) + list(range(11, 46)):
    try:
        socket.socket(family, socket.SOCK_DGRAM).close(); opened.append(family)
    except OSError: pass
    try:
        socket.socket(family, socket.SOCK_STREAM).close(); opened.append(family)
    except OSError: pass
print(opened)
`;

const RESIST = `
cd /tmp; mkdir -p a/b "$(printf 'new\\nline')" -- -rf; touch a/b/c .hidden ..more; ln -s a loop; chmod 000 a/b; chmod 000 a
mkdir deep; cd deep; i=0; while [ $i -lt 300 ]; do mkdir dddddddddddddddd 2>/dev/null && cd dddddddddddddddd || break; i=$((i+1)); done; exit 0`;

const SYSV = `
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
made = [libc.shmget(0x5eed, 4096, 0o1666), libc.msgget(0x5eed, 0o1666), libc.semget(0x5eed, 1, 0o1666)]
try: made.append(os.open("/dev/shm/left", os.O_CREAT | os.O_RDWR))
except OSError: made.append(-1)
try: made.append(os.open("/dev/mqueue/left", os.O_CREAT | os.O_RDWR))
except OSError: made.append(-1)
print("refused" if all(m == -1 for m in made) else made)
`;

const KERNEL = `
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
NEW = {"user": 0x10000000, "mount": 0x20000, "pid": 0x20000000, "net": 0x40000000, "ipc": 0x8000000, "uts": 0x4000000}
done = ["unshare " + n for n, flag in NEW.items() if libc.unshare(flag) == 0]
for n, flag in NEW.items():
    pid = libc.syscall(56 if os.uname().machine == "x86_64" else 220, flag | 17, 0, 0, 0, 0)
    if pid == 0: os._exit(0)
    if pid > 0: done.append("clone " + n)
if libc.mount(b"none", b"/tmp", b"tmpfs", 0, None) == 0: done.append("mount")
if libc.umount2(b"/proc", 2) == 0: done.append("umount")
if libc.ptrace(0, 0, 0, 0) == 0: done.append("ptrace")
if libc.chroot(b"/tmp") == 0: done.append("chroot")
if libc.sethostname(b"x", 1) == 0: done.append("sethostname")
if libc.setuid(0) == 0: done.append("setuid")
if libc.keyctl(0, -3, 1) > 0 if hasattr(libc, "keyctl") else False: done.append("keyctl")
if libc.personality(0x0040000) != -1: done.append("personality")
for path in ["/proc/sysrq-trigger", "/proc/kcore", "/dev/mem", "/dev/kmsg"]:
    try: os.close(os.open(path, os.O_RDWR)); done.append(path)
    except OSError: pass
print(done)
`;
