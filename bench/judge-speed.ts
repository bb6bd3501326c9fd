/** The judge's speed: off-policy evaluation against Open Bandit Pipeline, and the import of decisions. */
import { parseArgs } from "node:util";
import { importSpeed } from "./judge-speed/import.ts";
import { opeSpeed } from "./judge-speed/ope.ts";
import { printTable } from "./support/interleave.ts";
import type { Bench } from "./support/programs.ts";

export const bench: Bench = {
  summary: "off-policy evaluation against Open Bandit Pipeline, and rows/s of imports (--data DIR)",
  async run(args) {
    const { values } = parseArgs({
      args,
      options: {
        data: { type: "string", default: process.env.ROLLBOOK_DATA ?? "../shared/data" },
        json: { type: "boolean", default: false },
      },
    });
    printTable(await opeSpeed(values.data), args);
    printTable(await importSpeed(), args);
  },
};
