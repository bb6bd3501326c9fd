/** Which rollouts the book holds already, by their ids: what a worker that died had sealed but not reported.
 *  In: a book's directory. Out: the digest of an envelope, or nothing. Reads through the catalog; changes no record. */
import type { Digest } from "../../base/digest.ts";
import { RolloutContent, RolloutEnvelope } from "../../contract/index.ts";
import { openCatalog } from "../../store/index.ts";
import { RECORD_GUIDE } from "../../store/record-facts.ts";

export interface SealedIndex {
  /** The envelope of the first artifact under one of these ids that `accept` takes.
   *  `fresh`: also what was sealed since the last look, by whomever. */
  find(
    ids: readonly string[],
    options: { fresh: boolean; accept?: (content: Digest) => Promise<boolean> },
  ): Promise<Digest | undefined>;
  close(): Promise<void>;
}

export async function openSealedIndex(root: string): Promise<SealedIndex> {
  const catalog = openCatalog(root, RECORD_GUIDE);
  let syncing: Promise<unknown> = catalog.sync();
  await syncing;
  return {
    async find(ids, { fresh, accept = async () => true }) {
      if (fresh) {
        // A look that is under way may have passed what we ask for: begin another after it.
        syncing = syncing.then(() => catalog.sync());
        await syncing;
      }
      for (const { digest } of ids.flatMap((id) => [...catalog.records({ kind: RolloutContent.kind, id })])) {
        const envelopes = catalog
          .referrersOf(digest)
          .filter((each) => catalog.record(each)?.kind === RolloutEnvelope.kind);
        if (envelopes.length > 0 && (await accept(digest))) return envelopes.sort()[0];
      }
      return undefined;
    },
    async close() {
      await syncing.catch(() => {});
      catalog.close();
    },
  };
}
