/** What the caller knows about kinds; the store itself knows nothing of them. Pure functions of (kind, bytes). */
import type { Digest } from "../base/index.ts";

export interface KindGuide {
  /** False for kinds that refer to nothing and are not listed, such as columns: their bytes need not be read.
   *  Without this function every kind may be a record. */
  isRecord?(kind: string): boolean;
  /** Kept by gc on its own account, with everything it leads to. */
  isRoot(kind: string): boolean;
  /** The blobs this one rests on. */
  references(kind: string, bytes: Uint8Array): Iterable<Digest>;
  /** What a catalog lists of it; undefined for what is not listed. */
  describe(kind: string, bytes: Uint8Array): RecordDescription | undefined;
}

export interface RecordDescription {
  readonly id?: string;
  readonly family?: string;
  /** Plain JSON. */
  readonly fields: object;
}
