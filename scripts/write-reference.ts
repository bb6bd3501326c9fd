/** Writes docs/reference/settings.md from the schemas of the configuration files, docs/reference/outputs.md from the output of the
 *  commands, and the table of docs/reference/interop.md.
 *  Run `npm run reference` after a change of any source; a test compares. */
import { readFileSync, writeFileSync } from "node:fs";
import { interopPage } from "./reference/interop-table.ts";
import { outputsPage } from "./reference/outputs-page.ts";
import { settingsPage } from "./reference/reference-pages.ts";

writeFileSync(new URL("../docs/reference/settings.md", import.meta.url), settingsPage());
writeFileSync(new URL("../docs/reference/outputs.md", import.meta.url), await outputsPage());
const interop = new URL("../docs/reference/interop.md", import.meta.url);
writeFileSync(interop, await interopPage(readFileSync(interop, "utf8")));
