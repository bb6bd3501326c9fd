/** The commit mark of a replay store: its segments, the hashes of their arrays, and their writers. Stored as
 *  `manifest.json` in the store, not as a blob of a book. */
import * as z from "zod";
import { count, defineRecord, digest, finite, id, type RecordOf, text, timeMs } from "../codec/index.ts";

const name = z.string().max(256);
/** Paths in a store consist of plain names: a manifest must not lead a reader out of its directory. */
const path = z
  .string()
  .max(512)
  .regex(/^(?:[a-z0-9_-]+(?:\/[a-z0-9_-]+)*)?$/, "is not a path of plain names");

const writer = z.strictObject({
  program: text(128),
  versions: z.record(name, text(128)),
  /** The command or call that wrote the segment. */
  invocation: z.array(text()).max(1024),
  gitCommit: z.optional(text(64)),
});

const segment = z.strictObject({
  /** Path of the segment's Zarr tree; "" is the store itself. */
  path,
  createdAtMs: timeMs,
  writer,
  /** Last heads of the book when the rows were read, sorted. Absent if the book has no heads. */
  heads: z.optional(z.array(digest).max(4096)),
  rows: z.record(name, count),
  /** Maxima over the segment: candidates of a step, context features of a source, features of a candidate. */
  maxCandidates: count,
  maxContext: count,
  maxFeatures: count,
  /** Digests of the objects that the rows bind: artifacts, splits, and the sets of configs. */
  hashes: z.record(name, digest),
  /** Digest of `zarr.json` of every group, by the path of the group. */
  groups: z.record(name, digest),
  /** Digest of the metadata and chunk digests of every array, by path. */
  arrays: z.record(name, digest),
});

export const ReplayManifest = defineRecord({
  kind: "rollbook.replay-manifest.v1",
  summary: "The parts of a replay store; replaced atomically, so it is the commit mark of every write.",
  shape: {
    /** Release of rollbook that can read this store. */
    needs: text(128),
    tables: z.strictObject({ id: text(128), version: count }),
    layout: z.enum(["segmented", "plain"]),
    /** Number of commits. A segmented root also carries it, so that an outdated manifest is detected. */
    generation: count,
    returns: z.strictObject({
      semantics: z.enum(["root-gain", "reward-to-go"]),
      gamma: z.number().min(0).max(1),
      epsilon: finite.refine((value) => value > 0, "is not positive"),
    }),
    /** Bit names of the candidates' reasons, append-only. */
    reasons: z.array(id).max(64),
    rows: z.record(name, count),
    segments: z.array(segment).max(1_000_000),
    /** For a plain store: the manifest of the segmented store that was compacted. */
    compactedFrom: z.optional(digest),
    /** Digest of all fields above. */
    digest,
  },
});
export type ReplayManifest = RecordOf<typeof ReplayManifest>;
export type ReplaySegment = ReplayManifest["segments"][number];
export type ReplayWriter = ReplaySegment["writer"];
