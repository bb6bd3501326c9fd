/** Suggests the name that a misspelled name probably means. In: the written name, the known names. Out: the nearest
 *  known name, if it is near enough. Pure. */

/** Undefined if no name is within a third of the written letters (at least one edit). Ignores case. */
export function nearestName(written: string, known: readonly string[]): string | undefined {
  const far = Math.max(1, Math.floor(written.length / 3));
  const ranked = known
    .map((name) => ({ name, edits: edits(written.toLowerCase(), name.toLowerCase()) }))
    .sort((a, b) => a.edits - b.edits);
  return ranked[0] !== undefined && ranked[0].edits <= far ? ranked[0].name : undefined;
}

/** Edit distance: an insertion, a deletion, a change or a swap of neighbours counts as one edit. Computed row by
 *  row. */
function edits(a: string, b: string): number {
  let before: number[] = [];
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const changed = row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      const isSwap = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      const swapped = isSwap ? before[j - 2]! + 1 : changed;
      next.push(Math.min(row[j]! + 1, next[j - 1]! + 1, changed, swapped));
    }
    [before, row] = [row, next];
  }
  return row[b.length]!;
}
