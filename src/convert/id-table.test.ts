import { expect, test } from "vitest";
import { IdTable } from "./id-table.ts";

test("every id is told apart from every other, and a second time names its first line", () => {
  const lines = new IdTable();
  for (let i = 1; i <= 20_000; i++) expect(lines.add(`d-${i}`, i)).toBeUndefined();
  for (let i = 1; i <= 20_000; i += 37) expect(lines.add(`d-${i}`, 99_999)).toBe(i);
});

test("an id is counted as often as it came, however the table grows", () => {
  const counts = new IdTable();
  for (let round = 1; round <= 3; round++)
    for (let i = 1; i <= 5_000; i++) expect(counts.count(`d-${i}`)).toBe(round);
});
