/** Control groups as slots: one group per worker bounds memory, processes and CPU of its members.
 *  In: /proc/self/mountinfo (or a given text). Out: CgroupSlot with limits, counters and kill.
 *  Supports version 1 (one directory per controller) and version 2 (one directory). Does not start programs. */
import { readFileSync } from "node:fs";
import { unavailable } from "./files.ts";
import { type Cgroups, CONTROLLERS } from "./slot.ts";
import { CgroupsV1, type V1Roots } from "./v1.ts";
import { CgroupsV2 } from "./v2.ts";

export function findCgroups(mountinfo = readFileSync("/proc/self/mountinfo", "utf8")): Cgroups {
  const mounts = parseMounts(mountinfo);
  const v1 = v1Roots(mounts);
  if (v1 !== undefined) return new CgroupsV1(v1);
  const v2 = mounts.find((mount) => mount.type === "cgroup2");
  if (v2 !== undefined) return new CgroupsV2(v2.path);
  throw unavailable("neither cgroup v1 nor v2 with memory, pids and cpu is mounted");
}

interface Mount {
  readonly path: string;
  readonly type: string;
  readonly options: ReadonlySet<string>;
}

/** Lines of proc(5) mountinfo: `id parent dev root path opts … - type source super-opts`. */
function parseMounts(text: string): Mount[] {
  const mounts: Mount[] = [];
  for (const line of text.split("\n")) {
    const [left, right] = line.split(" - ");
    if (left === undefined || right === undefined) continue;
    const [type, , options] = right.split(" ");
    const path = (left.split(" ")[4] ?? "").replace(/\\(\d{3})/g, (_, octal) =>
      String.fromCharCode(Number.parseInt(octal, 8)),
    );
    mounts.push({ path, type: type ?? "", options: new Set((options ?? "").split(",")) });
  }
  return mounts;
}

function v1Roots(mounts: readonly Mount[]): V1Roots | undefined {
  const roots = new Map<string, string>();
  for (const mount of mounts) {
    if (mount.type !== "cgroup") continue;
    for (const controller of [...CONTROLLERS, "cpuacct"])
      if (mount.options.has(controller)) roots.set(controller, mount.path);
  }
  return CONTROLLERS.every((controller) => roots.has(controller)) ? roots : undefined;
}
