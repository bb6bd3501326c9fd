/** The judge's speed: off-policy evaluation against Open Bandit Pipeline, one decision of a trained policy, and the
 *  import of decisions. */
import { parseArgs } from "node:util";
import { RollbookError } from "../src/base/errors.ts";
import { decisionSpeed } from "./judge-speed/decision.ts";
import { importSpeed } from "./judge-speed/import.ts";
import { opeSpeed } from "./judge-speed/ope.ts";
import { printTable } from "./support/interleave.ts";
import type { Bench } from "./support/programs.ts";

export const bench: Bench = {
  summary:
    "off-policy evaluation against Open Bandit Pipeline, µs per decision, rows/s of imports (--data DIR --only decision)",
  async run(args) {
    const { values } = parseArgs({
      args,
      options: {
        data: { type: "string", default: process.env.ROLLBOOK_DATA ?? "../shared/data" },
        only: { type: "string" },
        json: { type: "boolean", default: false },
      },
    });
    const parts: Record<string, () => unknown> = {
      decision: decisionSpeed,
      ope: () => opeSpeed(values.data),
      import: importSpeed,
    };
    const names = Object.keys(parts).filter((name) => values.only === undefined || name === values.only);
    if (names.length === 0) {
      const known = Object.keys(parts).join(", ");
      const message = `no part is called ${values.only}. Known: ${known}.`;
      throw new RollbookError("unknown-name", { part: values.only }, message);
    }
    for (const name of names) printTable((await parts[name]!()) as Record<string, string | number>[], args);
  },
};
