/** Collects rows in groups, so that a writer of columns needs memory for only one group. */

/** A group ends with the row that reaches one of these limits. */
const GROUP_VALUES = 1 << 17;
const GROUP_ROWS = 1 << 15;

/** `sizeOf`: share of a group that a row fills, in values. No group is empty. */
export async function* rowGroups<Row>(
  rows: AsyncIterable<Row>,
  sizeOf: (row: Row) => number,
): AsyncGenerator<readonly Row[]> {
  let group: Row[] = [];
  let values = 0;
  for await (const row of rows) {
    group.push(row);
    values += sizeOf(row);
    if (values < GROUP_VALUES && group.length < GROUP_ROWS) continue;
    yield group;
    [group, values] = [[], 0];
  }
  if (group.length > 0) yield group;
}
