/** Storage of a Zarr hierarchy: a few methods that a plain Map<string, Uint8Array> satisfies. Keys are paths with "/"
 *  and no leading slash. Methods may return a value or a promise. */

export type MaybePromise<T> = T | Promise<T>;

export interface ReadableStore {
  /** If given: `readInto` of up to this many bytes returns synchronously, never a promise. Chunks for immediate use are
   *  then read in such pieces. */
  readonly readsAtOnce?: number;
  get(key: string): MaybePromise<Uint8Array | undefined>;
  /** Fills `parts`, one after another, with the available bytes from `offset` on (from the end if negative). Returns
   *  the size of the whole value, so that the caller detects missing or extra bytes; undefined if there is no such key.
   *  Without this method, whole values are read. */
  readInto?(key: string, parts: readonly Uint8Array[], offset: number): MaybePromise<number | undefined>;
}

export interface Store extends ReadableStore {
  /** True if `set` does not use the bytes after it has returned. Other stores, like a Map, keep the bytes and therefore
   *  get a copy. */
  readonly borrows?: boolean;
  /** Replaces the value as a whole. */
  set(key: string, bytes: Uint8Array): MaybePromise<unknown>;
  /** All keys, in any order; a store may omit those that do not begin with `prefix`. */
  keys(prefix?: string): Iterable<string> | AsyncIterable<string>;
}

/** `readInto` for any store. */
export function readInto(
  store: ReadableStore,
  key: string,
  { parts, offset }: { parts: readonly Uint8Array[]; offset: number },
): MaybePromise<number | undefined> {
  if (store.readInto !== undefined) return store.readInto(key, parts, offset);
  const value = store.get(key);
  return value instanceof Promise
    ? value.then((bytes) => scatter(bytes, parts, offset))
    : scatter(value, parts, offset);
}

/** Runs `job` for 0 … count−1, at most `limit` at a time. If a job fails, waits for the others in flight, so that
 *  nothing touches the caller's memory afterwards. Then throws the first error. */
export async function eachInFlight(
  count: number,
  limit: number,
  job: (index: number) => MaybePromise<void>,
): Promise<void> {
  let next = 0;
  const failures: unknown[] = [];
  const lane = async () => {
    while (next < count && failures.length === 0) {
      try {
        const running = job(next++);
        if (running instanceof Promise) await running;
      } catch (error) {
        failures.push(error);
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(limit, count) }, lane));
  if (failures.length > 0) throw failures[0];
}

function scatter(
  value: Uint8Array | undefined,
  parts: readonly Uint8Array[],
  offset: number,
): number | undefined {
  if (value === undefined) return undefined;
  let at = offset < 0 ? Math.max(0, value.length + offset) : offset;
  for (const part of parts) {
    const piece = value.subarray(at, at + part.length);
    part.set(piece);
    at += piece.length;
  }
  return value.length;
}
