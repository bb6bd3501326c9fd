import { expect, test } from "vitest";
import { IdLines } from "./id-lines.ts";

test("every id is told apart from every other, and a second time names its first line", () => {
  const lines = new IdLines();
  for (let i = 1; i <= 20_000; i++) expect(lines.add(`d-${i}`, i)).toBeUndefined();
  for (let i = 1; i <= 20_000; i += 37) expect(lines.add(`d-${i}`, 99_999)).toBe(i);
});
