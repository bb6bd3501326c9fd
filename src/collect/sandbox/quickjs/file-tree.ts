/** The guest's whole file system: /task as given, read-only; /tmp in memory, bounded; nothing else. Names count against
 *  the scratch space like content, because the host's memory holds them.
 *  In: the task's files. Out: reads, writes and listings by absolute or relative path. Holds no handle of the host. */

type WriteFault = "EROFS" | "ENOENT" | "ENOSPC" | "ENAMETOOLONG";

/** Overhead of a file or folder besides its content: entries of two maps, and two bytes per character of its path. */
const ENTRY_BYTES = 256;
/** Limits of a name and of a whole path, as on Linux. */
const MAX_NAME_CHARS = 255;
const MAX_PATH_CHARS = 4096;

export class FileTree {
  readonly #task: ReadonlyMap<string, Uint8Array>;
  readonly #stdin: Uint8Array;
  readonly #tmp = new Map<string, Uint8Array>();
  readonly #folders = new Set(["/tmp"]);
  #room: number;

  constructor(task: ReadonlyMap<string, Uint8Array>, stdin: Uint8Array, scratchBytes: number) {
    this.#task = task;
    this.#stdin = stdin;
    this.#room = scratchBytes;
  }

  read(path: string): Uint8Array | undefined {
    const whole = absolute(path);
    if (whole === "/dev/stdin") return this.#stdin;
    if (whole.startsWith("/task/")) return this.#task.get(whole.slice(6));
    return whole.startsWith("/tmp/") ? this.#tmp.get(whole.slice(5)) : undefined;
  }

  /** Undefined on success, else the name of the error, as in errno(3). */
  write(path: string, content: Uint8Array): WriteFault | undefined {
    if (isTooLong(path)) return "ENAMETOOLONG";
    const whole = absolute(path);
    if (!whole.startsWith("/tmp/")) return "EROFS";
    if (!this.#folders.has(parentOf(whole))) return "ENOENT";
    const before = this.#tmp.get(whole.slice(5));
    const room = this.#room + (before === undefined ? -entryBytes(whole) : before.byteLength);
    if (content.byteLength > room) return "ENOSPC";
    this.#room = room - content.byteLength;
    this.#tmp.set(whole.slice(5), content);
    return undefined;
  }

  makeFolder(path: string, recursive: boolean): WriteFault | "EEXIST" | undefined {
    if (isTooLong(path)) return "ENAMETOOLONG";
    const whole = absolute(path);
    if (!whole.startsWith("/tmp/")) return whole === "/tmp" ? "EEXIST" : "EROFS";
    if (this.#folders.has(whole) || this.#tmp.has(whole.slice(5))) return recursive ? undefined : "EEXIST";
    if (!this.#folders.has(parentOf(whole))) {
      const fault = recursive ? this.makeFolder(parentOf(whole), true) : "ENOENT";
      if (fault !== undefined) return fault;
    }
    if (entryBytes(whole) > this.#room) return "ENOSPC";
    this.#room -= entryBytes(whole);
    this.#folders.add(whole);
    return undefined;
  }

  remove(path: string): boolean {
    const whole = absolute(path);
    const held = whole.startsWith("/tmp/") ? this.#tmp.get(whole.slice(5)) : undefined;
    if (held === undefined) return false;
    this.#room += held.byteLength + entryBytes(whole);
    return this.#tmp.delete(whole.slice(5));
  }

  /** Names in a folder, sorted. Undefined if the folder does not exist. Folders of /task are implied by their files. */
  list(path: string): string[] | undefined {
    const whole = absolute(path);
    if (whole === "/") return ["task", "tmp"];
    const names = new Set<string>();
    const task = [...this.#task.keys()].map((key) => `/task/${key}`);
    const tmp = [...this.#tmp.keys()].map((key) => `/tmp/${key}`);
    for (const entry of [...task, ...tmp, ...this.#folders])
      if (entry.startsWith(`${whole}/`)) names.add(entry.slice(whole.length + 1).split("/")[0]!);
    return names.size > 0 || whole === "/task" || this.#folders.has(whole) ? [...names].sort() : undefined;
  }
}

function entryBytes(path: string): number {
  return ENTRY_BYTES + 2 * path.length;
}

function isTooLong(path: string): boolean {
  return path.length > MAX_PATH_CHARS || path.split("/").some((name) => name.length > MAX_NAME_CHARS);
}

function parentOf(path: string): string {
  return path.slice(0, path.lastIndexOf("/"));
}

/** Resolves `.` and `..` as text, because there are no links. */
export function absolute(path: string, base = "/task"): string {
  const parts: string[] = [];
  for (const part of (path.startsWith("/") ? path : `${base}/${path}`).split("/")) {
    if (part === "" || part === ".") continue;
    if (part === "..") parts.pop();
    else parts.push(part);
  }
  return `/${parts.join("/")}`;
}
