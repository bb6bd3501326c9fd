import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { FAMILIES } from "./families.ts";

describe("the families", () => {
  it("are ten, seven of them for engines that run JavaScript only, and stand in the documents as they are", () => {
    expect(new Set(FAMILIES.map(({ name }) => name)).size).toBe(10);
    expect(FAMILIES.filter(({ language }) => language === "javascript")).toHaveLength(7);
    const page = readFileSync(new URL("../../../../docs/reference/simulator.md", import.meta.url), "utf8");
    for (const { name, language, structures } of FAMILIES) {
      const row = page.split("\n").find((line) => line.startsWith(`| \`${name}\` `));
      expect([name, row?.includes("| all ")]).toEqual([name, language === "javascript"]);
      expect(row).toContain(` ${String(structures).replace(/\B(?=(\d{3})+$)/g, " ")} |`);
    }
  });
});
