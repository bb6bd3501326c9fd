/** Writes `schemas/<kind>.json` for every record kind and every exchange form, and removes other files.
 *  Run `npm run schemas` after a change of the contracts; a test compares. */
import { mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { schemaFiles } from "../src/contract/json-schema.ts";

const directory = fileURLToPath(new URL("../schemas/", import.meta.url));
const files = schemaFiles();
mkdirSync(directory, { recursive: true });
for (const name of readdirSync(directory)) if (!files.has(name)) rmSync(join(directory, name));
for (const [name, text] of files) writeFileSync(join(directory, name), text);
console.error(`${files.size} schemas written to schemas/`);
