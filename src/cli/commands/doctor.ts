/** `rollbook doctor`: is everything there that the other commands need? Changes nothing. */
import { accessSync, constants, existsSync, statfsSync, statSync } from "node:fs";
import { delimiter, dirname, join, resolve } from "node:path";
import type { Command } from "commander";
import { RollbookError, reasonOf } from "../../base/index.ts";
import { isBook, keyringOf, listTrusted, loadSigner } from "../../book/open/index.ts";
import { openCatalog, openSqlite } from "../../store/index.ts";
import { jsonLine, plural, printable, thousands } from "../../view/format.ts";
import { addCommand } from "../command.ts";
import type { Io } from "../io.ts";
import { type BookFlags, bookRoot, withBook } from "../with-book.ts";

interface Finding {
  readonly check: string;
  readonly state: "ok" | "note" | "bad";
  readonly message: string;
}

const LEAST_FREE_MIB = 512;
/** What later stages can make use of; nothing here needs them. */
const TOOLS = ["bwrap", "docker", "python3"];

export function addDoctor(program: Command, io: Io): void {
  addCommand(program, "doctor", {
    summary: "check that everything needed is there",
    examples: ["rollbook doctor"],
  }).action(async (flags: BookFlags & { json?: true }) => {
    const root = bookRoot(io, flags);
    const findings = [
      checkNode(),
      attempt("sqlite", checkSqlite),
      await attemptAsync("book", () => checkBook(io, flags, root)),
      attempt("disk", () => checkDisk(root)),
      attempt("key", () => checkKey(io)),
      ...TOOLS.map((tool) => checkTool(tool, io.env.PATH ?? "")),
    ];
    if (flags.json) for (const each of findings) io.out(jsonLine(each));
    else
      for (const each of findings)
        io.out(`${each.state.padEnd(5)} ${each.check.padEnd(8)} ${printable(each.message)}\n`);
    const bad = findings.filter(({ state }) => state === "bad");
    if (bad.length > 0)
      throw new RollbookError(
        "not-well",
        { checks: bad.map(({ check }) => check) },
        `${plural(bad.length, "check")} failed: ${bad.map(({ check }) => check).join(", ")}.`,
      );
  });
}

function checkNode(): Finding {
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
  const fits = major > 20 || (major === 20 && minor >= 19);
  return {
    check: "node",
    state: fits ? "ok" : "bad",
    message: `${process.versions.node}, needs 20.19 or newer`,
  };
}

function checkSqlite(): Finding {
  const db = openSqlite(":memory:");
  const { version } = db.prepare("SELECT sqlite_version() AS version").get<{ version: string }>()!;
  db.close();
  const driver = process.getBuiltinModule("node:sqlite") === undefined ? "libsql" : "node:sqlite";
  return { check: "sqlite", state: "ok", message: `${version} through ${driver}` };
}

async function checkBook(io: Io, flags: BookFlags, root: string): Promise<Finding> {
  if (!isBook(root))
    return { check: "book", state: "note", message: `none in ${root}: \`rollbook init\` creates it` };
  return withBook(io, flags, async () => {
    const catalog = openCatalog(root);
    try {
      const { damaged, undescribed } = await catalog.sync();
      const bytes = catalog.totals().reduce((sum, each) => sum + each.bytes, 0);
      const blobs = catalog.totals().reduce((sum, each) => sum + each.blobs, 0);
      const size = `${root}: ${plural(blobs, "blob")}, ${plural(bytes, "byte")}`;
      if (damaged + undescribed === 0) return { check: "book", state: "ok", message: size };
      return {
        check: "book",
        state: "bad",
        message: `${size}, some of it unreadable: \`rollbook verify\` names it`,
      };
    } finally {
      catalog.close();
    }
  });
}

function checkDisk(root: string): Finding {
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

function checkKey(io: Io): Finding {
  const keyring = keyringOf(io);
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

function checkTool(tool: string, path: string): Finding {
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

/** A check that cannot be made has failed, and says why. */
function attempt(check: string, make: () => Finding): Finding {
  try {
    return make();
  } catch (error) {
    return { check, state: "bad", message: reasonOf(error) };
  }
}

async function attemptAsync(check: string, make: () => Promise<Finding>): Promise<Finding> {
  try {
    return await make();
  } catch (error) {
    return { check, state: "bad", message: reasonOf(error) };
  }
}
