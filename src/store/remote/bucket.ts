/** A place for objects that never change: put once, read, list, delete. In: keys below one prefix. Out: bytes.
 *  Every write is conditional, so that of two writers of one key exactly one succeeds. Knows nothing of books. */

export interface BucketObject {
  readonly key: string;
  readonly bytes: number;
  /** By the clock of the server. */
  readonly modifiedMs: number;
}

export interface Bucket {
  /** For people: `s3://bucket/prefix`. */
  readonly url: string;
  /** False: the key exists, and nothing was written. */
  putNew(key: string, bytes: Uint8Array): Promise<boolean>;
  /** A whole file, in parts where it is large. False: the key exists. */
  putNewFile(key: string, path: string): Promise<boolean>;
  /** Overwrites the key. Only for keys with one writer and no history. */
  replace(key: string, bytes: Uint8Array): Promise<void>;
  /** Undefined: there is no such key. */
  get(key: string): Promise<Uint8Array | undefined>;
  /** Into a new file; false: there is no such key. */
  getFile(key: string, path: string): Promise<boolean>;
  list(prefix: string): AsyncIterable<BucketObject>;
  delete(keys: readonly string[]): Promise<void>;
  /** The time of the server. */
  nowMs(): Promise<number>;
}
