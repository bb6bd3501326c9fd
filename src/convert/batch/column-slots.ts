/** Slots in a file for arrays of known sizes, each filled from its start. In: positions and sizes, then bytes in any
 *  order of the arrays. Out: a file without holes. An array that is not filled exactly is an error. */
import { crc32 } from "node:zlib";
import { RollbookError } from "../../base/index.ts";
import type { NewFile } from "../new-file.ts";

interface ColumnSlot {
  readonly start: number;
  readonly bytes: number;
  filled: number;
  crc: number;
}

export class ColumnSlots {
  readonly #file: NewFile;
  readonly #slots = new Map<string, ColumnSlot>();
  readonly #checksums: boolean;

  constructor(file: NewFile, options: { checksums: boolean }) {
    this.#file = file;
    this.#checksums = options.checksums;
  }

  add(name: string, start: number, bytes: number): void {
    this.#slots.set(name, { start, bytes, filled: 0, crc: 0 });
  }

  write(name: string, bytes: Uint8Array): void {
    const slot = this.#slots.get(name)!;
    if (slot.filled + bytes.length > slot.bytes) throw misfit(name, slot.bytes, slot.filled + bytes.length);
    this.#file.writeAt(bytes, slot.start + slot.filled);
    slot.filled += bytes.length;
    if (this.#checksums) slot.crc = crc32(bytes, slot.crc);
  }

  /** Returns the CRC-32 of each array by name. */
  finish(): ReadonlyMap<string, number> {
    for (const [name, { bytes, filled }] of this.#slots)
      if (filled !== bytes) throw misfit(name, bytes, filled);
    return new Map([...this.#slots].map(([name, { crc }]) => [name, crc]));
  }
}

function misfit(name: string, expected: number, actual: number): RollbookError {
  return new RollbookError(
    "length-mismatch",
    { column: name, expected, actual },
    `column ${name} has ${actual} bytes, the shards promise ${expected}. Verify the batch: \`rollbook batch verify\`.`,
  );
}
