import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { findCgroups } from "./find.ts";

/** Plain directories replace the kernel's file system, so that tests can see the written files and values. */
let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "cgroup test-")); // mountinfo escapes the space
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

const mount = (path: string, type: string, options: string) =>
  `30 25 0:26 / ${path.replaceAll(" ", "\\040")} rw,nosuid - ${type} ${type} ${options}`;
const LIMITS = { memoryBytes: 64 << 20, pids: 20, cpus: 1.5 };

describe("cgroup version 1", () => {
  const controllers = ["memory", "pids", "cpu,cpuacct"];
  const info = () => {
    for (const name of controllers) mkdirSync(join(root, name));
    return controllers.map((name) => mount(join(root, name), "cgroup", `rw,${name}`)).join("\n");
  };

  it("a slot is one directory per hierarchy, with the limits of the task", () => {
    const cgroups = findCgroups(info());
    const slot = cgroups.openSlot();
    expect(cgroups.version).toBe(1);
    expect(slot.procsFiles).toHaveLength(3);
    slot.limit(LIMITS);
    const [name] = readdirSync(join(root, "memory"));
    const read = (file: string) => readFileSync(join(root, file.replace("/", `/${name}/`)), "utf8");
    expect([read("memory/memory.limit_in_bytes"), read("pids/pids.max")]).toEqual(["67108864", "20"]);
    expect(read("cpu,cpuacct/cpu.cfs_quota_us")).toBe("150000");
    // This kernel has no swap accounting, so the file must not be created.
    expect(existsSync(join(root, "memory", name!, "memory.memsw.limit_in_bytes"))).toBe(false);
  });

  it("reads the kernel's counters", () => {
    const slot = findCgroups(info()).openSlot();
    const [name] = readdirSync(join(root, "memory"));
    const write = (file: string, text: string) =>
      writeFileSync(join(root, file.replace("/", `/${name}/`)), text);
    write("memory/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n");
    write("memory/memory.max_usage_in_bytes", "4096\n");
    write("pids/pids.events", "max 7\n");
    write("cpu,cpuacct/cpuacct.usage", "2500000\n");
    expect(slot.counters()).toEqual({ oomKills: 3, pidsRefused: 7, cpuMs: 2.5, peakMemoryBytes: 4096 });
  });
});

describe("cgroup version 2", () => {
  const info = (subtree = "cpu memory pids") => {
    writeFileSync(join(root, "cgroup.subtree_control"), `${subtree}\n`);
    return mount(root, "cgroup2", "rw,nsdelegate");
  };

  it("a slot is one directory, killed and limited as a whole", () => {
    const cgroups = findCgroups(info());
    const slot = cgroups.openSlot();
    slot.limit(LIMITS);
    slot.kill();
    const name = readdirSync(root).find((entry) => entry.startsWith("rollbook-"))!;
    const read = (file: string) => readFileSync(join(root, name, file), "utf8");
    expect(cgroups.version).toBe(2);
    expect([
      read("memory.max"),
      read("memory.oom.group"),
      read("pids.max"),
      read("cpu.max"),
      read("cgroup.kill"),
    ]).toEqual(["67108864", "1", "20", "150000 100000", "1"]);
  });

  it("reads the kernel's counters; a peak that cannot be reset is unknown, not stale", () => {
    const slot = findCgroups(info()).openSlot();
    const name = readdirSync(root).find((entry) => entry.startsWith("rollbook-"))!;
    writeFileSync(
      join(root, name, "memory.events"),
      "low 0\nhigh 0\nmax 9\noom 1\noom_kill 2\noom_group_kill 1\n",
    );
    writeFileSync(join(root, name, "pids.events"), "max 4\n");
    writeFileSync(join(root, name, "cpu.stat"), "usage_usec 1500\nuser_usec 1000\n");
    slot.resetPeak();
    expect(slot.counters()).toEqual({ oomKills: 2, pidsRefused: 4, cpuMs: 1.5, peakMemoryBytes: null });
  });

  it("enables the controllers it misses", () => {
    findCgroups(info("memory")).openSlot();
    expect(readFileSync(join(root, "cgroup.subtree_control"), "utf8")).toBe("+pids +cpu");
  });
});

it("version 1 is taken where it holds the memory controller; without any, the error says what to do", () => {
  for (const name of ["memory", "pids", "cpu"]) mkdirSync(join(root, name));
  const v1 = ["memory", "pids", "cpu"].map((name) => mount(join(root, name), "cgroup", `rw,${name}`));
  expect(findCgroups([mount(join(root, "unified"), "cgroup2", "rw"), ...v1].join("\n")).version).toBe(1);
  expect(() => findCgroups(mount("/", "ext4", "rw"))).toThrow(/control groups cannot be used.*systemd-run/s);
});
