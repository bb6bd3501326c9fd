import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { PAGE, replayTables, tablesOf } from "../scripts/replay-tables.ts";

/** Removes the padding of cells and the blank lines between blocks. */
const bare = (text: string) =>
  text
    .replaceAll(/ *\| */g, "|")
    .replaceAll(/-{3,}/g, "---")
    .split("\n")
    .filter((line) => line.trim() !== "")
    .join("\n");

it("docs/reference/replay-format.md describes exactly the tables of the schema; else run `npx tsx scripts/replay-tables.ts`", () => {
  expect(bare(tablesOf(readFileSync(PAGE, "utf8")))).toBe(bare(replayTables()));
});
