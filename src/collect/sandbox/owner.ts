/** The owner of a cgroup, a directory or a container: the process that made it. Its start time and the boot id
 *  distinguish it from a later process with the same number. Leftovers of a dead owner are removed at the next start.
 *  In: /proc. Out: tags, and a check for a living owner. Does not remove anything, except in `claimDirectory`. */
import { chmodSync, lstatSync, mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { RollbookError } from "../../base/index.ts";
import { bootId } from "../../store/index.ts";

const PREFIX = "rollbook-";

/** The tag `<boot>-<pid>-<start>` of this process. */
export function ownerTag(): string {
  return `${bootTag()}-${process.pid}-${startTime(process.pid)}`;
}

/** The owner part of a name made by `PREFIX + tag + "-" + number`, or undefined for a foreign name. */
export function ownerOf(name: string): string | undefined {
  return /^rollbook-([0-9a-f]{8}-\d+-\d+)-\d+$/.exec(name)?.[1];
}

export function isAlive(tag: string): boolean {
  const [boot, pid, start] = tag.split("-");
  return boot === bootTag() && startTime(Number(pid)) === start;
}

/** Claims `rollbook-<tag>-<n>` for the first free n. `make` creates the resource with that name. */
export function claimName(make: (name: string) => void): string {
  const tag = ownerTag();
  for (let n = 0; ; n++) {
    const name = `${PREFIX}${tag}-${n}`;
    try {
      make(name);
      return name;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    }
  }
}

/** Asynchronous form of `claimName`. `make` returns true if the name was free. */
export async function claimNameAsync(make: (name: string) => Promise<boolean>): Promise<string> {
  const tag = ownerTag();
  for (let n = 0; ; n++) if (await make(`${PREFIX}${tag}-${n}`)) return `${PREFIX}${tag}-${n}`;
}

/** Names under `directory` whose owner is dead. */
export function staleNames(directory: string): string[] {
  return readdirSync(directory).filter((name) => {
    const owner = ownerOf(name);
    return owner !== undefined && !isAlive(owner);
  });
}

/** Claims a fresh directory for one slot, private to this user, after removing those of dead owners. */
export function claimDirectory(): string {
  const root = join(tmpdir(), `${PREFIX}sandbox-${process.getuid?.() ?? 0}`);
  mkdirSync(root, { recursive: true, mode: 0o711 });
  const stat = lstatSync(root);
  if (!stat.isDirectory() || stat.uid !== (process.getuid?.() ?? 0)) {
    throw new RollbookError(
      "sandbox-unsafe-directory",
      { path: root },
      `${root} is not a directory of this user. Remove it, or set TMPDIR to a private place.`,
    );
  }
  // Passable but not listable: the task's user must reach its own slot in this directory.
  chmodSync(root, 0o711);
  for (const name of staleNames(root)) rmSync(join(root, name), { recursive: true, force: true });
  return join(
    root,
    claimName((name) => mkdirSync(join(root, name), { mode: 0o700 })),
  );
}

function bootTag(): string {
  return String(bootId()).slice(0, 8);
}

/** True if the process is gone or exiting (PF_EXITING). */
export function isEnding(pid: number): boolean {
  const fields = statOf(pid);
  return fields === undefined || (Number(fields[6]) & 4) !== 0;
}

function startTime(pid: number): string | undefined {
  return statOf(pid)?.[19];
}

/** Fields of /proc/<pid>/stat from the third on. They follow the command name, which may contain any text. */
function statOf(pid: number): string[] | undefined {
  let stat: string;
  try {
    stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code === "ENOENT" || code === "ESRCH") return undefined;
    throw error;
  }
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  // A zombie no longer owns anything.
  return fields[0] === "Z" || fields[0] === "X" ? undefined : fields;
}
