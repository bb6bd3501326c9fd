/** The harness of the rollout contracts: runs every row and prints the result.
 *  A row proves one claim about its subject. `sound` makes the real subject, `broken` a subject with a seeded defect.
 *  The proof is the same for both, so a row that stays green on its defect proves nothing. */
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { contractRows } from "./contract-claims/contracts.mjs";
import { greenRows } from "./contract-claims/green.mjs";
import { harnessRows } from "./contract-claims/harness.mjs";
import { loopRows } from "./contract-claims/loop.mjs";
import { refusalRows } from "./contract-claims/refusals.mjs";

export const ROWS = [...contractRows, ...loopRows, ...greenRows, ...harnessRows, ...refusalRows];

/** Runs all rows; the row named `defect` runs on its broken subject. */
export async function runRows({ defect } = {}) {
  const results = [];
  for (const row of ROWS) results.push(await runRow(row, row.name === defect ? row.broken : row.sound));
  return results;
}

/** Rows share no state: the result of a row does not depend on the others. */
export async function runRow({ name, claim, prove }, subject) {
  try {
    await prove(await subject());
    return { name, claim, pass: true };
  } catch (error) {
    const reason = String(error.message ?? error)
      .replaceAll(/\s+/g, " ")
      .slice(0, 240);
    return { name, claim, pass: false, reason };
  }
}

export function renderRows(results) {
  const width = Math.max(...results.map(({ name }) => name.length));
  const lines = results.map(({ name, claim, pass, reason }) => {
    const line = `${pass ? "PASS" : "FAIL"}  ${name.padEnd(width)}  ${claim}`;
    return pass ? line : `${line}\n      ${" ".repeat(width)}  ↳ ${reason}`;
  });
  const passed = results.filter(({ pass }) => pass).length;
  return `${lines.join("\n")}\n${passed} of ${results.length} claims hold\n`;
}

async function main() {
  const { values } = parseArgs({
    options: { "seed-defect": { type: "string" }, list: { type: "boolean" }, json: { type: "boolean" } },
  });
  if (values.list) {
    process.stdout.write(ROWS.map(({ name }) => `${name}\n`).join(""));
    return 0;
  }
  const defect = values["seed-defect"];
  if (defect !== undefined && !ROWS.some(({ name }) => name === defect)) {
    process.stderr.write(`error: there is no row ${JSON.stringify(defect)}. --list prints them.\n`);
    return 2;
  }
  const results = await runRows({ defect });
  process.stdout.write(values.json ? `${JSON.stringify(results)}\n` : renderRows(results));
  return results.every(({ pass }) => pass) ? 0 : 1;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) process.exitCode = await main();
