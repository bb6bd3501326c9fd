import { readFileSync } from "node:fs";
import { expect, it } from "vitest";

it("docs/verification-matrix.md lists exactly the rows that scripts/verify-local.sh checks", async () => {
  const script = new URL("../scripts/verify-local.mjs", import.meta.url).href;
  const { markdownRows } = (await import(script)) as { markdownRows(): string };
  const cells = (text: string) =>
    text
      .split("\n")
      .filter((line) => line.startsWith("| ") && !/^\| (row|-)/.test(line))
      .map((line) => line.split("|").map((cell) => cell.trim()));
  expect(cells(readFileSync("docs/verification-matrix.md", "utf8"))).toEqual(cells(markdownRows()));
});
