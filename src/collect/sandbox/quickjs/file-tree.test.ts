import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { absolute, FileTree } from "./file-tree.ts";

const bytes = (text: string) => new TextEncoder().encode(text);

describe("FileTree", () => {
  it("no path, however written, reaches outside /task and /tmp", () => {
    const part = fc.constantFrom("..", ".", "", "a", "tmp", "task", "etc");
    fc.assert(
      fc.property(fc.array(part, { maxLength: 12 }), fc.boolean(), (parts, rooted) => {
        const path = (rooted ? "/" : "") + parts.join("/");
        expect(absolute(path).split("/")).not.toContain("..");
        const tree = new FileTree(new Map([["a", bytes("task")]]), bytes(""), 100);
        const fault = tree.write(path, bytes("x"));
        if (fault === undefined) expect(absolute(path)).toMatch(/^\/tmp\/[^/]+$/);
        else expect(tree.read("/task/a")).toEqual(bytes("task"));
      }),
    );
  });

  it("scratch space is given back when a file is replaced or removed, and never exceeded", () => {
    const tree = new FileTree(new Map(), bytes(""), 10);
    expect(tree.write("/tmp/a", bytes("12345678"))).toBeUndefined();
    expect(tree.write("/tmp/b", bytes("123"))).toBe("ENOSPC");
    expect(tree.write("/tmp/a", bytes("1"))).toBeUndefined();
    expect(tree.write("/tmp/b", bytes("123456789"))).toBeUndefined();
    expect(tree.remove("/tmp/b")).toBe(true);
    expect(tree.write("/tmp/c", bytes("123456789"))).toBeUndefined();
    expect(tree.list("/tmp")).toEqual(["a", "c"]);
  });

  it("folders must exist before files are written into them", () => {
    const tree = new FileTree(new Map([["d/e", bytes("")]]), bytes(""), 10);
    expect(tree.write("/tmp/d/e", bytes(""))).toBe("ENOENT");
    expect(tree.makeFolder("/tmp/d/f", false)).toBe("ENOENT");
    expect(tree.makeFolder("/tmp/d/f", true)).toBeUndefined();
    expect(tree.write("/tmp/d/e", bytes(""))).toBeUndefined();
    expect(tree.makeFolder("/task/x", true)).toBe("EROFS");
    expect([tree.list("/tmp/d"), tree.list("d"), tree.list("/"), tree.list("/x")]).toEqual([
      ["e", "f"],
      ["e"],
      ["task", "tmp"],
      undefined,
    ]);
  });
});
