/** Which rollouts the book holds already, by their ids: what a worker that died had sealed but not reported.
 *  In: a book's directory. Out: the digest of an envelope, or nothing. Reads through the catalog; changes no record. */
import type { Digest } from "../../base/digest.ts";
import { RolloutContent, RolloutEnvelope } from "../../contract/index.ts";
import { openCatalog } from "../../store/index.ts";
import { RECORD_GUIDE } from "../../store/record-facts.ts";

export interface SealedIndex {
  /** `fresh`: also what was sealed since the last look, by whomever. */
  find(rolloutId: string, options: { fresh: boolean }): Promise<Digest | undefined>;
  close(): Promise<void>;
}

export async function openSealedIndex(root: string): Promise<SealedIndex> {
  const catalog = openCatalog(root, RECORD_GUIDE);
  let syncing: Promise<unknown> = catalog.sync();
  await syncing;
  return {
    async find(rolloutId, { fresh }) {
      if (fresh) {
        // A look that is under way may have passed what we ask for: begin another after it.
        syncing = syncing.then(() => catalog.sync());
        await syncing;
      }
      const contents = [...catalog.records({ kind: RolloutContent.kind, id: rolloutId })];
      const envelopes = contents
        .flatMap(({ digest }) => catalog.referrersOf(digest))
        .filter((digest) => catalog.record(digest)?.kind === RolloutEnvelope.kind);
      return envelopes.sort()[0];
    },
    async close() {
      await syncing.catch(() => {});
      catalog.close();
    },
  };
}
