import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { fastFolder } from "../../../test/support/fast-folder.ts";
import { linkOrCopy } from "./files.ts";

function folders(): [string, string] {
  const both: [string, string] = [fastFolder("link-or-copy"), mkdtempSync(join(tmpdir(), "rollbook-copy-"))];
  onTestFinished(() => {
    for (const folder of both) rmSync(folder, { recursive: true, force: true });
  });
  return both;
}

it("a file gets a second name, and a copy on a file system to which no link leads", () => {
  const [memory, disk] = folders();
  const from = join(memory, "file");
  writeFileSync(from, "bytes");
  for (const flush of [true, false])
    for (const folder of [memory, disk]) {
      const to = join(folder, `second-${flush}`);
      linkOrCopy(from, to, { temp: join(folder, "temp"), flush });
      expect(readFileSync(to, "utf8")).toBe("bytes");
      const isLink = statSync(folder).dev === statSync(from).dev;
      expect(statSync(to).ino === statSync(from).ino).toBe(isLink);
    }
});

it("a file that is not there is an error, not an empty copy", () => {
  const [memory, disk] = folders();
  const at = { temp: join(disk, "temp"), flush: true };
  expect(() => linkOrCopy(join(memory, "none"), join(disk, "to"), at)).toThrow("ENOENT");
});
