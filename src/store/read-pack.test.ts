import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { systemClock } from "../base/index.ts";
import { openBook } from "./book.ts";

const hasPython = spawnSync("python3", ["--version"]).status === 0;
const readBook = (root: string) =>
  spawnSync("python3", ["examples/read_pack.py", root], { encoding: "utf8" });

let root = "";
beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), "rollbook-python-"));
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

describe.skipIf(!hasPython)("examples/read_pack.py (needs python3)", () => {
  it("reads what the book wrote, from the description alone, and notices a changed byte", async () => {
    const book = await openBook(root, { clock: systemClock, packBytes: 30_000, largeBytes: 9000 });
    const expected: string[] = [];
    for (let size = 0; size < 10_000; size += 333) {
      const kind = `test.kind${"x".repeat(size % 11)}`;
      expected.push(`${book.put(kind, Buffer.alloc(size, String(size)))} ${kind} ${size}`);
    }
    await book.close();
    const { stdout, stderr, status } = readBook(root);
    expect(stderr).toBe("");
    expect(status).toBe(0);
    expect(stdout.trim().split("\n")).toEqual(expected);
    const file = join(root, "packs", readdirSync(join(root, "packs"))[0]!);
    const bytes = readFileSync(file);
    bytes[bytes.length >> 1]! ^= 1;
    writeFileSync(file, bytes);
    expect(readBook(root).stderr).toContain("AssertionError");
  });
});
