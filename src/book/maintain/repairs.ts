/** How each damaged blob of a book comes back from a copy of the book.
 *  In: the problems of a verification, an index. Out: repairs, sorted so that no record refers to a later one. Repairs
 *  nothing. */
import type { Digest } from "../../base/index.ts";
import { RolloutContent, RolloutDraft, RolloutEnvelope } from "../../contract/index.ts";
import type { Problem } from "../../keep/verify/index.ts";
import { IMPORTABLE_KINDS } from "../import/index.ts";
import type { BookIndex } from "../open/index.ts";

export type Repair =
  /** No command imports the blob: the whole file must be restored. The path is relative to the book. */
  | { readonly how: "file"; readonly file: string }
  /** `artifact show` prints the whole rollout in the form that `artifact import` reads. */
  | { readonly how: "rollout"; readonly digest: Digest }
  /** `artifact import` reads the bytes that `cat` prints. */
  | { readonly how: "record"; readonly digest: Digest; readonly kind: string };

/** Without an index, the rollout of a call, a message or a column is unknown. */
export function repairsOf(
  problems: readonly Problem[],
  index?: Pick<BookIndex, "rolloutsWith" | "digestsOf">,
): Repair[] {
  const repairs = new Map<string, Repair>();
  for (const { code, digest, kind, file } of problems) {
    // Without a file, no bytes are at fault: the record contradicts others, or they are lost.
    if (file === undefined || code === "unexpected-file") continue;
    for (const repair of repairsOfOne({ digest, kind, file }, index))
      repairs.set(repair.how === "file" ? repair.file : repair.digest, repair);
  }
  return [...repairs.values()].sort((a, b) => rank(a) - rank(b));
}

function repairsOfOne(
  { digest, kind = "", file }: { digest: Digest | undefined; kind: string | undefined; file: string },
  index: Pick<BookIndex, "rolloutsWith" | "digestsOf"> | undefined,
): Repair[] {
  if (digest === undefined) return [{ how: "file", file }];
  if (IMPORTABLE_KINDS.includes(kind)) return [{ how: "record", digest, kind }];
  if (kind === RolloutContent.kind || kind === RolloutEnvelope.kind) return [{ how: "rollout", digest }];
  // One rollout is enough to restore a part that several share.
  const ids = index?.rolloutsWith(digest).slice(0, 1) ?? [];
  const contents = index?.digestsOf(RolloutContent.kind, ids) ?? [];
  return contents.length === 0
    ? [{ how: "file", file }]
    : contents.map((content) => ({ how: "rollout", digest: content.digest }));
}

/** Files first: they may restore records that others refer to. */
function rank(repair: Repair): number {
  switch (repair.how) {
    case "file":
      return -1;
    case "rollout":
      return IMPORTABLE_KINDS.indexOf(RolloutDraft.kind);
    case "record":
      return IMPORTABLE_KINDS.indexOf(repair.kind);
    default:
      return repair satisfies never;
  }
}
