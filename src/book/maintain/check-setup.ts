/** Checks the requirements of a book: Node, SQLite, the book itself, its disk use, disk space, a key, tools.
 *  In: the path of the book, the keyring, the search path. Out: one finding per check. Changes nothing. */
import { accessSync, constants, existsSync, readdirSync, statfsSync, statSync } from "node:fs";
import { delimiter, dirname, join, relative, resolve, sep } from "node:path";
import { plural, reasonOf, thousands } from "../../base/index.ts";
import { BookHead } from "../../contract/index.ts";
import { openCatalog, openSqlite } from "../../store/index.ts";
import { isBook, type Keyring, listTrusted, loadSigner, openBook } from "../open/index.ts";

interface SetupFinding {
  readonly check: string;
  readonly state: "ok" | "note" | "bad";
  readonly message: string;
}

interface SetupRequest {
  readonly root: string;
  readonly keyring: Keyring;
  /** Search path in the form of the environment variable PATH. */
  readonly path: string;
}

const LEAST_FREE_MIB = 512;
/** Number of book parts that are listed with their size. */
const MOST_PARTS = 6;
/** Optional tools that later stages can use. Nothing in this file needs them. */
const TOOLS = ["bwrap", "docker", "python3"];

export async function checkSetup({ root, keyring, path }: SetupRequest): Promise<SetupFinding[]> {
  return [
    checkNode(),
    await attempt("sqlite", checkSqlite),
    await attempt("book", () => checkBook(root)),
    await attempt("use", () => checkUse(root)),
    await attempt("disk", () => checkDisk(root)),
    await attempt("key", () => checkKey(keyring)),
    ...TOOLS.map((tool) => checkTool(tool, path)),
  ];
}

function checkNode(): SetupFinding {
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
  const fits = major > 20 || (major === 20 && minor >= 19);
  return {
    check: "node",
    state: fits ? "ok" : "bad",
    message: `${process.versions.node}, needs 20.19 or newer`,
  };
}

function checkSqlite(): SetupFinding {
  const db = openSqlite(":memory:");
  const { version } = db.prepare("SELECT sqlite_version() AS version").get<{ version: string }>()!;
  db.close();
  const driver = process.getBuiltinModule("node:sqlite") === undefined ? "libsql" : "node:sqlite";
  return { check: "sqlite", state: "ok", message: `${version} through ${driver}` };
}

async function checkBook(root: string): Promise<SetupFinding> {
  if (!isBook(root))
    return { check: "book", state: "note", message: `none in ${root}: \`rollbook init\` creates it` };
  const book = await openBook(root, { mode: "read" });
  await book.close();
  const catalog = openCatalog(root);
  try {
    const { damaged, undescribed } = await catalog.sync();
    const bytes = catalog.totals().reduce((sum, each) => sum + each.bytes, 0);
    const size = `${root}: ${plural(catalog.distinctBlobs(), "blob")}, ${plural(bytes, "byte")}`;
    // gc folds heads, so a missing head counts as no loss here; `verify` checks heads.
    const lost = catalog.lost().filter(({ kind }) => kind !== BookHead.kind).length;
    if (damaged + undescribed + lost === 0) return { check: "book", state: "ok", message: size };
    const fault =
      lost > 0 ? `${plural(lost, "record")} of it lost with storage files` : "some of it unreadable";
    return { check: "book", state: "bad", message: `${size}, ${fault}: \`rollbook verify\` names it` };
  } finally {
    catalog.close();
  }
}

/** Disk use of a book: bytes of the files below each of its folders, and of the files in its root. */
function checkUse(root: string): SetupFinding {
  if (!isBook(root)) return { check: "use", state: "ok", message: "no disk use: no book yet" };
  const parts = new Map<string, number>();
  for (const each of readdirSync(root, { recursive: true, withFileTypes: true })) {
    if (!each.isFile()) continue;
    const path = join(each.parentPath, each.name);
    const [part = ""] = relative(root, path).split(sep);
    const { size } = statSync(path, { throwIfNoEntry: false }) ?? { size: 0 }; // other processes may remove files
    parts.set(part, (parts.get(part) ?? 0) + size);
  }
  const total = [...parts.values()].reduce((sum, size) => sum + size, 0);
  // Sizes are rounded down, so that the parts never add up to more than the total. Parts below 0.1 MiB are not listed.
  const largest = [...parts].filter(([, size]) => size >= MEBIBYTE / 10).sort(([, a], [, b]) => b - a);
  const text = largest
    .slice(0, MOST_PARTS)
    .map(([part, size]) => `${part} ${mebibytes(size, Math.floor)}`)
    .join(", ");
  return {
    check: "use",
    state: "ok",
    message: `${mebibytes(total)} in ${root}${text === "" ? "" : `: ${text}`}`,
  };
}

const MEBIBYTE = 1024 ** 2;

function mebibytes(bytes: number, round: (x: number) => number = Math.ceil): string {
  return `${thousands(round((bytes / MEBIBYTE) * 10) / 10)} MiB`;
}

function checkDisk(root: string): SetupFinding {
  let folder = resolve(root);
  while (!existsSync(folder)) folder = dirname(folder);
  const { bavail, bsize } = statfsSync(folder);
  const free = Math.floor((bavail * bsize) / 1024 ** 2);
  return {
    check: "disk",
    state: free < LEAST_FREE_MIB ? "bad" : "ok",
    message: `${thousands(free)} MiB free at ${folder}`,
  };
}

function checkKey(keyring: Keyring): SetupFinding {
  const trusted = listTrusted(keyring).length;
  const signer = loadSigner(keyring);
  if (signer === undefined)
    return {
      check: "key",
      state: "note",
      message: `none in ${keyring.keyPath}: \`rollbook keys new\` makes one`,
    };
  return {
    check: "key",
    state: "ok",
    message: `${signer.publicKey}, ${plural(trusted, "other key")} trusted`,
  };
}

function checkTool(tool: string, path: string): SetupFinding {
  const found = path
    .split(delimiter)
    .map((folder) => join(folder, tool))
    .find(isExecutable);
  return {
    check: tool,
    state: found === undefined ? "note" : "ok",
    message: found ?? "not found; nothing here needs it",
  };
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}

/** A check that throws counts as failed; the error is its message. */
async function attempt(
  check: string,
  make: () => SetupFinding | Promise<SetupFinding>,
): Promise<SetupFinding> {
  try {
    return await make();
  } catch (error) {
    return { check, state: "bad", message: reasonOf(error) };
  }
}
