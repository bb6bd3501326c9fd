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
        const tree = new FileTree(new Map([["a", bytes("task")]]), bytes(""), 10_000);
        const fault = tree.write(path, bytes("x"));
        if (fault === undefined) expect(absolute(path)).toMatch(/^\/tmp\/[^/]+$/);
        else expect(tree.read("/task/a")).toEqual(bytes("task"));
      }),
    );
  });

  it("scratch space is given back when a file is replaced or removed, and never exceeded", () => {
    const entry = 256 + 2 * "/tmp/a".length;
    const tree = new FileTree(new Map(), bytes(""), 2 * entry + 10);
    expect(tree.write("/tmp/a", bytes("12345678"))).toBeUndefined();
    expect(tree.write("/tmp/b", bytes("123"))).toBe("ENOSPC");
    expect(tree.write("/tmp/a", bytes("1"))).toBeUndefined();
    expect(tree.write("/tmp/b", bytes("123456789"))).toBeUndefined();
    expect(tree.remove("/tmp/b")).toBe(true);
    expect(tree.write("/tmp/c", bytes("123456789"))).toBeUndefined();
    expect(tree.list("/tmp")).toEqual(["a", "c"]);
  });

  it("names of files and folders never take more than the scratch space, whatever their lengths", () => {
    const act = fc.record({
      name: fc
        .integer({ min: 1, max: 300 })
        .chain((length) => fc.nat(99).map((n) => `${n}`.padEnd(length, "n"))),
      folder: fc.boolean(),
      remove: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(act, { maxLength: 200 }), (acts) => {
        const tree = new FileTree(new Map(), bytes(""), 20_000);
        for (const { name, folder, remove } of acts) {
          if (remove) tree.remove(`/tmp/${name}`);
          else if (folder) tree.makeFolder(`/tmp/${name}`, true);
          else tree.write(`/tmp/${name}`, bytes(""));
          const names = tree.list("/tmp")!;
          expect(names.reduce((sum, each) => sum + 256 + 2 * each.length, 0)).toBeLessThanOrEqual(20_000);
          expect(names.every((each) => each.length <= 255)).toBe(true);
        }
      }),
    );
    const roomy = new FileTree(new Map(), bytes(""), 1e9);
    expect(roomy.write(`/tmp/${"n".repeat(256)}`, bytes(""))).toBe("ENAMETOOLONG");
    expect(roomy.makeFolder(`/tmp${"/n".repeat(3000)}`, true)).toBe("ENAMETOOLONG");
  });

  it("folders must exist before files are written into them", () => {
    const tree = new FileTree(new Map([["d/e", bytes("")]]), bytes(""), 10_000);
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
