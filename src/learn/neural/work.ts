/** Computation that may wait for data: a generator that yields promises and returns its result.
 *  With rows in memory it never waits, so the same code also runs synchronously. */

export type Work<T> = Generator<Promise<unknown>, T, void>;

/** The value of a promise; a plain value is returned without waiting. */
export function* ready<T>(value: T | Promise<T>): Work<T> {
  if (!(value instanceof Promise)) return value;
  let found: { value: T } | undefined;
  yield value.then((each) => {
    found = { value: each };
  });
  return found!.value;
}

/** The result of work whose data are all in memory. Throws if the work waits. */
export function runNow<T>(work: Work<T>): T {
  const { done, value } = work.next();
  if (done === true) return value;
  throw new TypeError("the rows are not in memory, and the caller cannot wait for them");
}

export async function runWaiting<T>(work: Work<T>): Promise<T> {
  for (let turn = work.next(); ; turn = work.next()) {
    if (turn.done === true) return turn.value;
    await turn.value;
  }
}
