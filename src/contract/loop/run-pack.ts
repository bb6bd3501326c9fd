/** A run pack: one folder with everything that a result depends on, and the facts needed to repeat it. The record lists
 *  every other file of the folder by its SHA-256. */
import * as z from "zod";
import { compareUtf8 } from "../../base/index.ts";
import { count, defineRecord, digest, id, type RecordOf, refuse, text, timeMs } from "../codec/index.ts";
import { publicKey } from "../trust/index.ts";

const packedFile = z.strictObject({
  /** Relative path, with / as separator. */
  path: text(1024),
  bytes: count,
  /** SHA-256 of the bytes, as `sha256sum` prints it. */
  digest,
});

export const RunPack = defineRecord({
  kind: "rollbook.run-pack.v1",
  summary: "A folder with a result and all of its inputs: files by digest, command, code, Node and machine.",
  shape: {
    /** The run: a benchmark suite, an ablation of a suite, or a training loop. `digest` is that of its
     *  configuration. */
    run: z.strictObject({ kind: z.enum(["bench", "loop", "ablation"]), name: id, digest }),
    /** Command line that repeats the run, without the program name. */
    command: z.array(text()).min(1),
    code: z.strictObject({
      version: text(64),
      /** Commit of a clone; `dirty` is true if files differed from it. */
      commit: z.optional(text(64)),
      dirty: z.optional(z.boolean()),
      /** SHA-256 of package-lock.json of a clone. */
      lockfile: z.optional(digest),
    }),
    node: text(64),
    machine: z.strictObject({
      platform: text(64),
      arch: text(64),
      cpu: text(256),
      cores: count,
      memoryBytes: count,
    }),
    files: z.array(packedFile).min(1),
    /** Key whose signature lies beside the record; absent if the pack is not signed. */
    signer: z.optional(publicKey),
    sealedAtMs: timeMs,
  },
  references: () => [],
  check({ files }) {
    files.forEach(({ path }, i) => {
      const bad = (message: string) =>
        refuse("bad-record", { field: `files[${i}].path` }, `files[${i}].path: ${message}`);
      if (
        /^\/|\\|\u0000/.test(path) ||
        path.split("/").some((part) => part === "" || part === "." || part === "..")
      )
        throw bad(`${JSON.stringify(path)} is not a relative path inside the pack.`);
      if (i > 0 && compareUtf8(files[i - 1]!.path, path) >= 0) throw bad("files are not sorted and unique.");
    });
  },
});
export type RunPack = RecordOf<typeof RunPack>;
