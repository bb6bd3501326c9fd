import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, readdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { makeDirectory } from "../../src/store/disk/make-directory.ts";
import { Cli, lines } from "../support/cli.ts";
import { copyPackage } from "../support/readable-package.ts";
import { draftWire } from "../support/shelf.ts";

/** Runs the command line as a user who is bound by file modes, because root is not. That user reads the copy in
 *  `folder`. */
function unprivileged(
  { cli, folder }: { cli: Cli; folder: string },
  words: readonly string[],
): { status: number | null; stderr: string } {
  const nobody = process.getuid?.() === 0 ? { uid: 65534, gid: 65534 } : {};
  return spawnSync(process.execPath, [join(folder, "dist/cli/main.js"), ...words], {
    cwd: folder,
    encoding: "utf8",
    env: { ...process.env, ROLLBOOK_BOOK: cli.book, ROLLBOOK_HOME: cli.home },
    ...nobody,
  });
}

describe("a place that cannot be written", () => {
  it.skipIf(process.platform === "win32")("is called a read-only book, with the remedy", async () => {
    const cli = new Cli();
    const folder = copyPackage();
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    await cli.ok("init");
    for (const path of [cli.folder, cli.book, ...readdirSync(cli.book).map((name) => join(cli.book, name))])
      if (statSync(path).isDirectory()) chmodSync(path, 0o555);
    const file = cli.file("in.jsonl", lines(draftWire("a")));
    for (const words of [["artifact", "import", file], ["gc"]]) {
      const { status, stderr } = unprivileged({ cli, folder }, words);
      expect(stderr).toMatch(/the book is read-only: .*chmod.*\[read-only\]/);
      expect(status).toBe(1);
    }
    const { stderr } = unprivileged({ cli, folder }, ["init", "--book", join(cli.folder, "new")]);
    expect(stderr).toMatch(/cannot be created: .*Name another directory.*\[no-directory\]/);
    chmodSync(cli.folder, 0o755);
  });

  it("is named when a file is in the way", async () => {
    const cli = new Cli();
    const file = cli.file("file", "");
    for (const book of [file, join(file, "below")])
      expect((await cli.run(["init", "--book", book])).err).toContain(
        `${file} is a file. Name another directory. [`,
      );
  });

  it.skipIf(!existsSync("/proc/self"))("ends in an error under /proc, and not never", () => {
    expect(() => makeDirectory("/proc/rollbook/book")).toThrow("/proc/rollbook/book cannot be created");
  });

  it("is made with all that is missing above it, and left alone if there", () => {
    const { folder } = new Cli();
    makeDirectory(join(folder, "a/b/c"), { mode: 0o700 });
    mkdirSync(join(folder, "a/b/c/d"));
    makeDirectory(join(folder, "a/b/c"));
    expect(readdirSync(join(folder, "a/b/c"))).toEqual(["d"]);
  });
});

describe("help", () => {
  it("is a command too", async () => {
    const cli = new Cli();
    expect(await cli.ok("help")).toBe(await cli.ok("--help"));
    expect(await cli.ok("help verify")).toBe(await cli.ok("verify --help"));
  });

  it("says where an option of commands belongs", async () => {
    expect((await new Cli().run("--json")).err).toContain("rollbook verify --json");
  });
});
