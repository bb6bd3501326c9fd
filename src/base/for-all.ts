/** Calls a function for each of many independent items. A failing item does not stop the others: its error is thrown
 *  outside of every caller, as an uncaught exception. */
export function forAll<T>(all: Iterable<T>, act: (each: T) => void): void {
  for (const each of all) {
    try {
      act(each);
    } catch (error) {
      queueMicrotask(() => {
        throw error;
      });
    }
  }
}
