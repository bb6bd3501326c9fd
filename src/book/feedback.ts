/** All late feedback of a book, as sealed: which of it counts is `lateRewards`' business. */
import { Feedback, openRecord, type Sealed } from "../contract/index.ts";
import type { BlobStore } from "../store/index.ts";
import type { BookIndex } from "./find/book-index.ts";

export async function feedbackOf(
  store: Pick<BlobStore, "get">,
  index: BookIndex,
): Promise<Sealed<Feedback>[]> {
  const sealed: Sealed<Feedback>[] = [];
  for (const { digest } of index.ofKind(Feedback.kind)) {
    const blob = (await store.get(digest))!;
    sealed.push({ kind: Feedback.kind, digest, bytes: blob.bytes, record: openRecord(Feedback, blob.bytes) });
  }
  return sealed;
}
