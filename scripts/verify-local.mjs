/** Runs the verification matrix (docs/verification-matrix.md) on the built package and prints pass or fail per row.
 *  In: rows. Out: a table, or --markdown for the page; exit 0 only if every row passes.
 *  --seed-defect ROW seeds the row's defect into a copy of the evidence: exactly that row must fail.
 *  --defects then does this for every row: a row that stays green on its defect proves nothing. */
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { ROWS } from "./verification/rows.mjs";

/** The evidence of all rows in a new folder. */
export function makeEvidence() {
  const folder = mkdtempSync(join(tmpdir(), "rollbook-verify-"));
  for (const row of ROWS) {
    const startMs = performance.now();
    row.make(folder);
    process.stderr.write(
      `${row.name}: evidence made in ${((performance.now() - startMs) / 1000).toFixed(1)} s\n`,
    );
  }
  return folder;
}

export function checkRow(row, folder) {
  try {
    return { name: row.name, pass: true, seen: row.check(folder) };
  } catch (error) {
    return {
      name: row.name,
      pass: false,
      seen: String(error.message ?? error)
        .replaceAll(/\s+/g, " ")
        .slice(0, 240),
    };
  }
}

/** Runs the row on a copy of the evidence with the row's defect. */
export function checkSpoiled(row, folder) {
  const copy = mkdtempSync(join(tmpdir(), "rollbook-spoiled-"));
  try {
    cpSync(folder, copy, { recursive: true });
    row.spoil(copy);
    return checkRow(row, copy);
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
}

export function markdownRows() {
  return ROWS.map(
    ({ name, claim, command, threshold, evidence }) =>
      `| ${name} | ${claim} | \`${command}\` | ${threshold} | ${evidence.includes(" ") ? evidence : `\`${evidence}\``} |\n`,
  ).join("");
}

function main() {
  const { values } = parseArgs({
    options: {
      "seed-defect": { type: "string" },
      list: { type: "boolean" },
      json: { type: "boolean" },
      defects: { type: "boolean" },
    },
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
  const folder = makeEvidence();
  try {
    const results = ROWS.map((row) => (row.name === defect ? checkSpoiled : checkRow)(row, folder));
    const width = Math.max(...ROWS.map(({ name }) => name.length));
    const lines = results.map(
      ({ name, pass, seen }) => `${pass ? "PASS" : "FAIL"}  ${name.padEnd(width)}  ${seen}`,
    );
    const passed = results.filter(({ pass }) => pass).length;
    process.stdout.write(
      values.json
        ? `${JSON.stringify(results)}\n`
        : `${lines.join("\n")}\n${passed} of ${results.length} rows pass\n`,
    );
    const blind = values.defects ? ROWS.filter((row) => checkSpoiled(row, folder).pass) : [];
    if (values.defects)
      process.stdout.write(
        `${ROWS.length - blind.length} of ${ROWS.length} defects found${blind.map(({ name }) => `; ${name} stays green`).join("")}\n`,
      );
    return passed === results.length && blind.length === 0 ? 0 : 1;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) process.exitCode = main();
