/** Neighbours with the same key, one list at a time: memory holds the largest group. */
export async function* inGroups<T>(items: AsyncIterable<T>, keyOf: (item: T) => string): AsyncGenerator<T[]> {
  let group: T[] = [];
  for await (const item of items) {
    if (group.length > 0 && keyOf(group[0]!) !== keyOf(item)) {
      yield group;
      group = [];
    }
    group.push(item);
  }
  if (group.length > 0) yield group;
}
