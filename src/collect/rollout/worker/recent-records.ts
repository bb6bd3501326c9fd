/** Cache of records that this process recently read or sealed. The samples of a task share its records. The records
 *  that checked an upload are read again for its result, and a loop then cuts a batch from them. In: types and digests.
 *  Out: records, opened and checked once. A digest always names the same record, so entries stay valid. Keeps the
 *  newest. */
import type { Digest } from "../../../base/index.ts";
import type { RecordOf, RecordType } from "../../../contract/index.ts";
import { type BlobStore, readRecord } from "../../../store/index.ts";

const MOST_HELD = 2_048;

export class RecentRecords {
  readonly #book: Pick<BlobStore, "get">;
  readonly #most: number;
  readonly #held = new Map<Digest, { readonly kind: string; readonly record: unknown }>();

  constructor(book: Pick<BlobStore, "get">, most = MOST_HELD) {
    this.#book = book;
    this.#most = most;
  }

  async read<T extends RecordType>(type: T, digest: Digest): Promise<RecordOf<T>> {
    const held = this.held(type, digest);
    if (held !== undefined) return held;
    const record = await readRecord(this.#book, type, digest);
    this.add(type, digest, record);
    return record;
  }

  /** Reads a record that is needed only once, such as a call, without caching it. */
  readOnce<T extends RecordType>(type: T, digest: Digest): Promise<RecordOf<T>> {
    return readRecord(this.#book, type, digest);
  }

  /** Undefined if the record is not cached. */
  held<T extends RecordType>(type: T, digest: Digest): RecordOf<T> | undefined {
    const held = this.#held.get(digest);
    return held?.kind === type.kind ? (held.record as RecordOf<T>) : undefined;
  }

  /** Caches a record that was just read from the book, or is durable there. */
  add<T extends RecordType>({ kind }: T, digest: Digest, record: RecordOf<T>): void {
    this.#held.set(digest, { kind, record });
    if (this.#held.size <= this.#most) return;
    const [oldest] = this.#held.keys();
    this.#held.delete(oldest!);
  }
}
