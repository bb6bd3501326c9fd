/** The records of a ZIP archive of stored (uncompressed) entries with known sizes. Pure.
 *  In: names and sizes. Out: the position of each entry, and the bytes around them. Uses ZIP64 if 32 bits are not
 *  enough. The time of every entry is 1 January 1980, so that the same content gives the same bytes. */

interface ZipEntry {
  readonly name: string;
  readonly size: number;
}

interface ZipPlan {
  readonly entries: readonly (ZipEntry & { readonly headerAt: number; readonly dataAt: number })[];
  readonly directoryAt: number;
  readonly isZip64: boolean;
}

const LIMIT_32 = 0xffff_ffff;
const LOCAL_BYTES = 30;
const LOCAL_EXTRA_BYTES = 20;
const DOS_DATE = 0x0021;
/** Names are UTF-8. */
const FLAGS = 0x0800;

/** `limit` is the size from which ZIP64 is used. Only tests lower it. */
export function planZip(entries: readonly ZipEntry[], limit = LIMIT_32): ZipPlan {
  const plain = place(entries, false);
  return plain.directoryAt < limit ? plain : place(entries, true);
}

export function localHeader(plan: ZipPlan, index: number, crc: number): Uint8Array {
  const { name, size } = plan.entries[index]!;
  const extra = Buffer.alloc(plan.isZip64 ? LOCAL_EXTRA_BYTES : 0);
  if (plan.isZip64) {
    extra.writeUInt16LE(1, 0);
    extra.writeUInt16LE(LOCAL_EXTRA_BYTES - 4, 2);
    extra.writeBigUInt64LE(BigInt(size), 4);
    extra.writeBigUInt64LE(BigInt(size), 12);
  }
  const fixed = Buffer.alloc(LOCAL_BYTES);
  fixed.writeUInt32LE(0x04034b50, 0);
  writeShared(fixed, 4, { name, size, crc, extra: extra.length, isZip64: plan.isZip64 });
  return Buffer.concat([fixed, Buffer.from(name), extra]);
}

/** The end of the archive: the central directory and the records after it. */
export function centralDirectory(plan: ZipPlan, crcOf: (name: string) => number): Uint8Array {
  const parts = plan.entries.map(({ name, size, headerAt }) => {
    const extra = Buffer.alloc(plan.isZip64 ? 28 : 0);
    if (plan.isZip64) {
      extra.writeUInt16LE(1, 0);
      extra.writeUInt16LE(24, 2);
      for (const [i, value] of [size, size, headerAt].entries())
        extra.writeBigUInt64LE(BigInt(value), 4 + 8 * i);
    }
    const fixed = Buffer.alloc(46);
    fixed.writeUInt32LE(0x02014b50, 0);
    fixed.writeUInt16LE(versionOf(plan), 4);
    writeShared(fixed, 6, { name, size, crc: crcOf(name), extra: extra.length, isZip64: plan.isZip64 });
    fixed.writeUInt32LE(plan.isZip64 ? LIMIT_32 : headerAt, 42);
    return Buffer.concat([fixed, Buffer.from(name), extra]);
  });
  const directory = Buffer.concat(parts);
  return Buffer.concat([directory, ...endRecords(plan, directory.length)]);
}

function endRecords(plan: ZipPlan, directoryBytes: number): Buffer[] {
  const { entries, directoryAt, isZip64 } = plan;
  const end = Buffer.alloc(22);
  end.writeUInt32LE(0x06054b50, 0);
  end.writeUInt16LE(entries.length, 8);
  end.writeUInt16LE(entries.length, 10);
  end.writeUInt32LE(isZip64 ? LIMIT_32 : directoryBytes, 12);
  end.writeUInt32LE(isZip64 ? LIMIT_32 : directoryAt, 16);
  if (!isZip64) return [end];
  const wide = Buffer.alloc(56);
  wide.writeUInt32LE(0x06064b50, 0);
  wide.writeBigUInt64LE(44n, 4);
  wide.writeUInt16LE(versionOf(plan), 12);
  wide.writeUInt16LE(versionOf(plan), 14);
  for (const [i, value] of [entries.length, entries.length, directoryBytes, directoryAt].entries())
    wide.writeBigUInt64LE(BigInt(value), 24 + 8 * i);
  const locator = Buffer.alloc(20);
  locator.writeUInt32LE(0x07064b50, 0);
  locator.writeBigUInt64LE(BigInt(directoryAt + directoryBytes), 8);
  locator.writeUInt32LE(1, 16);
  return [wide, locator, end];
}

/** The fields that the local header and the directory have in common, in the same order. */
function writeShared(
  bytes: Buffer,
  at: number,
  entry: { name: string; size: number; crc: number; extra: number; isZip64: boolean },
): void {
  const size = entry.isZip64 ? LIMIT_32 : entry.size;
  bytes.writeUInt16LE(entry.isZip64 ? 45 : 20, at);
  bytes.writeUInt16LE(FLAGS, at + 2);
  bytes.writeUInt16LE(DOS_DATE, at + 8);
  bytes.writeUInt32LE(entry.crc, at + 10);
  bytes.writeUInt32LE(size, at + 14);
  bytes.writeUInt32LE(size, at + 18);
  bytes.writeUInt16LE(Buffer.byteLength(entry.name), at + 22);
  bytes.writeUInt16LE(entry.extra, at + 24);
}

function place(entries: readonly ZipEntry[], isZip64: boolean): ZipPlan {
  let at = 0;
  const placed = entries.map((entry) => {
    const headerAt = at;
    const dataAt = headerAt + LOCAL_BYTES + Buffer.byteLength(entry.name) + (isZip64 ? LOCAL_EXTRA_BYTES : 0);
    at = dataAt + entry.size;
    return { ...entry, headerAt, dataAt };
  });
  return { entries: placed, directoryAt: at, isZip64 };
}

function versionOf({ isZip64 }: ZipPlan): number {
  return isZip64 ? 45 : 20;
}
