/** Splits a stream of bytes into lines, in bounded memory.
 *  In: chunks. Out: each line's bytes and number. Splits only at \n: JSON text may contain every other separator. */

export interface ByteLine {
  /** Line number, counted from 1. */
  readonly number: number;
  /** Undefined if the line was longer than the limit; its bytes are discarded. */
  readonly bytes: Uint8Array | undefined;
}

export async function* splitLines(
  chunks: AsyncIterable<Uint8Array>,
  maxBytes: number,
): AsyncGenerator<ByteLine> {
  let number = 1;
  let parts: Uint8Array[] = [];
  let length = 0;
  const add = (part: Uint8Array): void => {
    length += part.length;
    if (length > maxBytes) parts = [];
    else parts.push(part);
  };
  const take = (): ByteLine => {
    const line = { number: number++, bytes: length > maxBytes ? undefined : Buffer.concat(parts, length) };
    parts = [];
    length = 0;
    return line;
  };
  for await (const chunk of chunks) {
    let from = 0;
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, from)) {
      add(chunk.subarray(from, end));
      yield take();
      from = end + 1;
    }
    if (from < chunk.length) add(chunk.subarray(from));
  }
  if (length > 0) yield take();
}
