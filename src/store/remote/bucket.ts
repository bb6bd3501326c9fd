/** A place for objects: put once, read, list, delete; and for the few that change, replaced by a writer that read the last version.
 *  In: keys below one prefix. Out: bytes. Every such write is conditional, so that of two writers exactly one succeeds.
 *  Knows nothing of books. */

export interface BucketObject {
  readonly key: string;
  readonly bytes: number;
  /** By the clock of the server. */
  readonly modifiedMs: number;
  /** As `getVersion` gives it, where the server lists versions. */
  readonly version?: string | undefined;
}

export interface VersionedBytes {
  readonly bytes: Uint8Array;
  readonly version: string;
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
  /** Puts a key if its version is `version`, or if there is none and `version` is undefined. False: it is another. */
  putIf(key: string, bytes: Uint8Array, version: string | undefined): Promise<boolean>;
  /** With its version. Undefined: there is no such key. */
  getVersion(key: string): Promise<VersionedBytes | undefined>;
  /** Undefined: there is no such key. */
  get(key: string): Promise<Uint8Array | undefined>;
  /** Into a new file; false: there is no such key. Without `flush` a power loss may leave the file cut short. */
  getFile(key: string, path: string, options?: { readonly flush?: boolean }): Promise<boolean>;
  list(prefix: string): AsyncIterable<BucketObject>;
  delete(keys: readonly string[]): Promise<void>;
  /** The time of the server. */
  nowMs(): Promise<number>;
}
