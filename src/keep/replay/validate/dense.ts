/** Checks the dense view: rebuilds it from the facts and compares bit for bit. */

import { chainWindows, stepWindows } from "../tables/index.ts";
import {
  buildCells,
  buildStates,
  CELL_COLUMNS,
  CELL_NEEDS,
  STATE_COLUMNS,
  STATE_NEEDS,
} from "../write/index.ts";
import { bytesOver, type NumericValues } from "../zarr/index.ts";
import type { Rule, RuleContext } from "./rule.ts";

export const denseStates: Rule = {
  needs: {
    chains: [...STATE_NEEDS.chains, "steps_start", "steps_count"],
    steps: STATE_NEEDS.steps,
    q_h: STATE_COLUMNS,
  },
  async check(context) {
    for await (const window of chainWindows(context.reader, STATE_NEEDS)) {
      const range = { from: window.firstStep, to: window.firstStep + window.stepCount };
      const stored = await context.reader.read("q_h", STATE_COLUMNS, range);
      const built = buildStates(window, context.manifest.returns);
      for (const name of STATE_COLUMNS)
        compare(context, { name, stored: stored[name], built: built[name], width: 1, from: range.from });
      checkDiscounts(context, stored, range.from);
    }
  },
};

export const denseCells: Rule = {
  needs: {
    steps: [...CELL_NEEDS.steps, "candidates_start", "candidates_count"],
    candidates: CELL_NEEDS.candidates,
    q_h: CELL_COLUMNS,
  },
  async check(context) {
    const width = Math.max(1, context.entry.maxCandidates);
    for await (const window of stepWindows(context.reader, CELL_NEEDS)) {
      const range = { from: window.firstStep, to: window.firstStep + window.stepCount };
      const stored = await context.reader.read("q_h", CELL_COLUMNS, range);
      const built = buildCells(window, width);
      for (const name of CELL_COLUMNS)
        compare(context, { name, stored: stored[name], built: built[name], width, from: range.from });
    }
  },
};

/** Checked separately, because learners often fail on these two columns. */
function checkDiscounts(
  { report, manifest }: RuleContext,
  { terminal, truncated, discount }: { terminal: Uint8Array; truncated: Uint8Array; discount: Float64Array },
  from: number,
): void {
  for (let i = 0; i < discount.length; i++) {
    if (terminal[i] === 1 && discount[i] !== 0)
      report("q_h/discount", from + i, "ending", `terminal, with discount ${discount[i]}`);
    if (truncated[i] === 1 && discount[i] !== manifest.returns.gamma)
      report(
        "q_h/discount",
        from + i,
        "ending",
        `truncated, with discount ${discount[i]}: its bootstrap is lost`,
      );
  }
}

function compare(
  { report }: RuleContext,
  {
    name,
    stored,
    built,
    width,
    from,
  }: { name: string; stored: NumericValues; built: NumericValues; width: number; from: number },
): void {
  const [a, b] = [bytesOver(stored), bytesOver(built)];
  if (Buffer.compare(a, b) === 0) return;
  const rowBytes = width * stored.BYTES_PER_ELEMENT;
  for (let row = 0; row * rowBytes < b.length; row++) {
    const at = row * rowBytes;
    if (Buffer.compare(a.subarray(at, at + rowBytes), b.subarray(at, at + rowBytes)) === 0) continue;
    const cell = firstDifference(stored, built, row * width);
    report(`q_h/${name}`, from + row, "dense", `holds ${stored[cell]} where the facts give ${built[cell]}`);
  }
}

function firstDifference(stored: NumericValues, built: NumericValues, start: number): number {
  let cell = start;
  while (cell < built.length - 1 && Object.is(stored[cell], built[cell])) cell++;
  return cell;
}
