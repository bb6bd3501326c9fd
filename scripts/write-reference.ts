/** Writes docs/settings.md from the schemas of the configuration files. Run `npm run reference` after a change of one of
 *  them; a test compares. */
import { writeFileSync } from "node:fs";
import { settingsPage } from "./reference/reference-pages.ts";

writeFileSync(new URL("../docs/settings.md", import.meta.url), settingsPage());
