/** Times several implementations of one task in one run, in turns, so that drift of the machine affects all equally.
 *  Out: the median time of each, and a table of ratios. */

export interface Timing {
  readonly name: string;
  /** Median time of one call. */
  readonly ms: number;
}

/** Each round gives every contender about `sliceMs`. The first round is a warm-up and does not count. */
export function interleave(
  contenders: Readonly<Record<string, () => unknown>>,
  { rounds = 7, sliceMs = 60 }: { rounds?: number; sliceMs?: number } = {},
): Timing[] {
  const names = Object.keys(contenders);
  const times = new Map<string, number[]>(names.map((name) => [name, []]));
  for (let round = 0; round <= rounds; round++) {
    for (const name of names) {
      const ms = timePerCall(contenders[name]!, sliceMs);
      if (round > 0) times.get(name)!.push(ms);
    }
  }
  return names.map((name) => ({ name, ms: median(times.get(name)!) }));
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

/** Rows of equal keys: as JSON with `--json` among the arguments, else as an aligned table. */
export function printTable(
  rows: readonly Readonly<Record<string, string | number>>[],
  args: readonly string[],
): void {
  if (args.includes("--json")) {
    console.log(JSON.stringify(rows));
    return;
  }
  const heads = Object.keys(rows[0] ?? {});
  const cells = [heads, ...rows.map((row) => heads.map((head) => show(row[head]!)))];
  const widths = heads.map((_, i) => Math.max(...cells.map((line) => line[i]!.length)));
  for (const line of cells)
    console.log(
      line
        .map((cell, i) => cell.padEnd(widths[i]!))
        .join("  ")
        .trimEnd(),
    );
}

function show(value: string | number): string {
  if (typeof value === "string" || Number.isInteger(value)) return String(value);
  return Math.abs(value) >= 100 ? value.toFixed(0) : value.toPrecision(3);
}

function timePerCall(call: () => unknown, sliceMs: number): number {
  const start = performance.now();
  let calls = 0;
  let elapsed = 0;
  do {
    call();
    calls++;
    elapsed = performance.now() - start;
  } while (elapsed < sliceMs);
  return elapsed / calls;
}
