/** The commit mark of a replay store: which segments it has, what their arrays hash to, who wrote them.
 *  Kept as `manifest.json` in the store, not as a blob of a book. */
import * as z from "zod";
import { count, defineRecord, digest, finite, id, type RecordOf, text, timeMs } from "../codec/index.ts";

const name = z.string().max(256);
/** Paths in a store are made of plain names: a manifest must not lead a reader out of its directory. */
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
  /** Where the Zarr tree of the segment stands; "" is the store itself. */
  path,
  createdAtMs: timeMs,
  writer,
  /** The last heads of the book when the rows were read, where it has heads; sorted. */
  heads: z.optional(z.array(digest).max(4096)),
  rows: z.record(name, count),
  /** Most candidates of a step, most context features of a source, most features of a candidate. */
  maxCandidates: count,
  maxContext: count,
  maxFeatures: count,
  /** Of what the rows bind: artifacts, splits, and the sets of configs. */
  hashes: z.record(name, digest),
  /** `zarr.json` of every group, by the path of the group. */
  groups: z.record(name, digest),
  /** Digest of metadata and chunk digests of every array, by path. */
  arrays: z.record(name, digest),
});

export const ReplayManifest = defineRecord({
  kind: "rollbook.replay-manifest.v1",
  summary: "The parts of a replay store; replaced atomically, so it is the commit mark of every write.",
  shape: {
    /** The release that reads this store. */
    needs: text(128),
    tables: z.strictObject({ id: text(128), version: count }),
    layout: z.enum(["segmented", "plain"]),
    /** Counts the commits; a segmented root carries it too, so that an old manifest shows. */
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
    /** Of a plain store: the manifest of the segmented one it was made from. */
    compactedFrom: z.optional(digest),
    /** Of everything above. */
    digest,
  },
});
export type ReplayManifest = RecordOf<typeof ReplayManifest>;
export type ReplaySegment = ReplayManifest["segments"][number];
export type ReplayWriter = ReplaySegment["writer"];
