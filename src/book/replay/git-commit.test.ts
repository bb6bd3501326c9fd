import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { gitCommitOf } from "./git-commit.ts";

const root = mkdtempSync(join(tmpdir(), "rollbook-git-"));
afterEach(() => rmSync(root, { recursive: true, force: true }));

const ONE = "1".repeat(40);
const TWO = "2".repeat(40);

/** Files are laid out by hand as in gitrepository-layout(5), so that the test needs no git. */
function write(path: string, text: string): void {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), `${text}\n`);
}

describe("the commit of a manifest", () => {
  it("is the environment's, then the work tree's, in branches, packed refs, detached heads and linked trees", () => {
    const found = (from: string) => gitCommitOf({ env: {} }, join(root, from));
    expect(gitCommitOf({ env: { GITHUB_SHA: "x" } }, root)).toBe("x");
    write(".git/HEAD", "ref: refs/heads/trunk");
    expect(found(".")).toBeUndefined(); // no commit yet
    write(".git/packed-refs", `# pack-refs with: peeled fully-peeled sorted\n${ONE} refs/heads/trunk`);
    expect(found(".")).toBe(ONE);
    write(".git/refs/heads/trunk", TWO);
    mkdirSync(join(root, "deep/er"), { recursive: true });
    expect(found("deep/er")).toBe(TWO);
    write("linked/.git", `gitdir: ${join(root, ".git/worktrees/linked")}`);
    write(".git/worktrees/linked/HEAD", "ref: refs/heads/trunk");
    write(".git/worktrees/linked/commondir", "../..");
    expect(found("linked")).toBe(TWO);
    write(".git/HEAD", ONE);
    expect(found(".")).toBe(ONE);
  });
});
