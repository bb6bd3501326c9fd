/** Digests of an array: one per stored object, and one over the metadata and all object digests, in order.
 *  In: stored bytes. Out: digests that any language recomputes with SHA-256 alone, without decoding. */
import { type Digest, digestBytes, digestToBytes } from "../../../base/index.ts";

/** Digest of a stored object (chunk or shard) = SHA-256(CHUNK_TAG, 0x00, its bytes). */
const CHUNK_TAG = "rollbook.zarr.chunk";
export const METADATA_TAG = "rollbook.zarr.metadata";
const ARRAY_TAG = "rollbook.zarr.array";

export interface ArrayDigests {
  /** Digest of each stored object (chunk or shard), in order. */
  readonly chunks: readonly Digest[];
  /** Digest of the array: its `zarr.json` and its chunks, without its path. */
  readonly array: Digest;
}

export function digestChunk(bytes: Uint8Array): Digest {
  return digestBytes(CHUNK_TAG, bytes);
}

/** SHA-256(ARRAY_TAG, 0x00, 32 bytes of the metadata digest, 32 bytes of each chunk digest). */
export function digestArray(metadataBytes: Uint8Array, chunks: readonly Digest[]): Digest {
  const all = [digestBytes(METADATA_TAG, metadataBytes), ...chunks];
  return digestBytes(ARRAY_TAG, Buffer.concat(all.map(digestToBytes)));
}
