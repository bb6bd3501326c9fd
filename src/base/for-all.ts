/** Does something for each of many who know nothing of each other. One that fails keeps no other from its turn: its error
 *  is thrown outside of every caller, as an uncaught exception. */
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
