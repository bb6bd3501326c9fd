import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { fastFolder } from "../../../test/support/fast-folder.ts";
import { SegmentCache } from "./segment-cache.ts";

const folder = fastFolder("segment-cache");
afterAll(() => rmSync(folder, { recursive: true, force: true }));

it("a view of a dead process is removed, one at work stays, and none is left at the end", async () => {
  const dead = join(folder, "views", "dead");
  mkdirSync(dead, { recursive: true });
  const cache = new SegmentCache(folder);
  await cache.withView(async (outer) => {
    expect([existsSync(dead), existsSync(outer)]).toEqual([false, false]);
    writeFileSync(outer, "work");
    await new SegmentCache(folder).withView(async (inner) => {
      expect(dirname(inner)).not.toBe(dirname(outer));
    });
    expect(existsSync(outer)).toBe(true);
  });
  expect(readdirSync(join(folder, "views"))).toEqual([]);
});
