/** A run pack: everything that a result rests on, in one folder, with the facts that repeat it. The record lists every
 *  other file of the folder by its SHA-256. */
import * as z from "zod";
import { compareUtf8 } from "../../base/index.ts";
import { count, defineRecord, digest, id, type RecordOf, refuse, text, timeMs } from "../codec/index.ts";
import { publicKey } from "../trust/index.ts";

const packedFile = z.strictObject({
  /** Relative, with /. */
  path: text(1024),
  bytes: count,
  /** SHA-256 of the bytes, as `sha256sum` prints it. */
  digest,
});

export const RunPack = defineRecord({
  kind: "rollbook.run-pack.v1",
  summary: "A folder with a result and all of its inputs: files by digest, command, code, Node and machine.",
  shape: {
    /** What was run: a benchmark suite, an ablation of one, or a training loop. `digest` is of its configuration. */
    run: z.strictObject({ kind: z.enum(["bench", "loop", "ablation"]), name: id, digest }),
    /** The command line that repeats it, without the program. */
    command: z.array(text()).min(1),
    code: z.strictObject({
      version: text(64),
      /** The commit of a clone, and whether files differed from it. */
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
    /** Whose signature lies beside the record; absent: the pack is not signed. */
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
