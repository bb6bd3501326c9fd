import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { READERS } from "../scripts/interop/readers.ts";
import { interopPage, pinned } from "../scripts/reference/interop-table.ts";

const page = readFileSync("docs/reference/interop.md", "utf8");

it("the table of formats is what the code says: `npm run reference` writes it", async () => {
  expect(page).toBe(await interopPage(page));
});

it("the table of readers names every command, with the versions that it installs", () => {
  const rows = page.split("\n").filter((line) => line.startsWith("| `npm run interop"));
  expect(rows.map((row) => row.match(/interop -- (\w+)`/)![1]).sort()).toEqual(Object.keys(READERS).sort());
  const versions = [...page.matchAll(/^\| `npm run interop -- (\w+)` +\| ([^|]+) \|/gm)].flatMap(
    ([, reader, list]) =>
      list!
        .trim()
        .split(", ")
        .map((text) => ({ reader: reader!, text })),
  );
  const packages: Readonly<Record<string, string>> = { TRL: "trl", Harbor: "harbor", DuckDB: "duckdb" };
  for (const { reader, text } of versions) {
    const [, name, version] = text.match(/^(\S+) ([\d.]+)/)!;
    expect([reader, name, pinned(reader, packages[name!] ?? name!)]).toEqual([reader, name, version]);
  }
});
