/** An object store: put once, read, list, delete. A few objects change; only a writer that read the last version may
 *  replace them.
 *  In: keys below one prefix. Out: bytes. These writes are conditional, so that exactly one of two writers succeeds.
 *  Does not know books. */

export interface BucketObject {
  readonly key: string;
  readonly bytes: number;
  /** Time by the clock of the server. */
  readonly modifiedMs: number;
  /** Version as `getVersion` returns it, if the server lists versions. */
  readonly version?: string | undefined;
}

export interface VersionedBytes {
  readonly bytes: Uint8Array;
  readonly version: string;
}

export interface Bucket {
  /** URL for messages: `s3://bucket/prefix`. */
  readonly url: string;
  /** False: the key exists, and nothing was written. */
  putNew(key: string, bytes: Uint8Array): Promise<boolean>;
  /** Uploads a whole file, in parts if it is large. False: the key exists. */
  putNewFile(key: string, path: string): Promise<boolean>;
  /** Overwrites the key. Only for keys with one writer and no history. */
  replace(key: string, bytes: Uint8Array): Promise<void>;
  /** Puts a key if its version is `version`, or if the key does not exist and `version` is undefined. False: the
   *  version differs. */
  putIf(key: string, bytes: Uint8Array, version: string | undefined): Promise<boolean>;
  /** Bytes with their version. Undefined: there is no such key. */
  getVersion(key: string): Promise<VersionedBytes | undefined>;
  /** Undefined: there is no such key. */
  get(key: string): Promise<Uint8Array | undefined>;
  /** Downloads into a new file. False: there is no such key. Without `flush` a power loss may truncate the file. */
  getFile(key: string, path: string, options?: { readonly flush?: boolean }): Promise<boolean>;
  list(prefix: string): AsyncIterable<BucketObject>;
  delete(keys: readonly string[]): Promise<void>;
  /** Time of the server. */
  nowMs(): Promise<number>;
}
