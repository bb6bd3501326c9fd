import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { MEANINGS } from "../scripts/reference/output-meanings.ts";
import { outputRows } from "../scripts/reference/output-rows.ts";
import { outputsPage } from "../scripts/reference/outputs-page.ts";

it("the reference of JSON outputs is what the commands print: `npm run reference` writes it", async () => {
  const page = await outputsPage();
  expect(readFileSync("docs/reference/outputs.md", "utf8")).toBe(page);
  for (const meaning of Object.values(MEANINGS)) expect(page).toContain(`| ${meaning} `);
}, 120_000);

it("a key without a meaning is an error that names it", () => {
  expect(() => outputRows("gc", [{ packs: 1, unheardOf: 2 }])).toThrow("unheardOf of `gc` has no meaning");
});
