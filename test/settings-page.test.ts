import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { settingsPage } from "../scripts/reference/reference-pages.ts";

it("the reference of settings is what the schemas say: `npm run reference` writes it", () => {
  expect(readFileSync("docs/reference/settings.md", "utf8")).toBe(settingsPage());
});
