/** Index of the rollouts in the book by id, including those that a worker sealed but did not report before it died, and
 *  of the given receipts. In: a book's directory. Out: digests. Reads through the catalog; changes no record. */
import type { Digest } from "../../../base/index.ts";
import {
  Attestation,
  Receipt,
  type ReceiptOutcome,
  RolloutContent,
  RolloutEnvelope,
} from "../../../contract/index.ts";
import { type Catalog, openCatalog } from "../../../store/index.ts";
import { isTaken } from "../../receipt.ts";

interface SealedArtifact {
  readonly content: Digest;
  readonly envelope: Digest;
  /** Attestations of any signer. */
  readonly attestations: readonly Digest[];
}

export interface GivenReceipt {
  readonly digest: Digest;
  readonly outcome: ReceiptOutcome;
}

export interface SealedIndex {
  /** Signed artifacts under these ids that `accept` accepts.
   *  `fresh`: includes artifacts that any process sealed since the last sync. */
  find(
    ids: readonly string[],
    options: { fresh: boolean; accept?: (content: Digest) => Promise<boolean> },
  ): Promise<SealedArtifact[]>;
  /** The subset of ids that have contents. For other ids, `find` returns nothing unless it syncs first. */
  among(ids: readonly string[]): ReadonlySet<string>;
  /** The contents under these ids, signed or not. Syncs first. */
  contents(ids: readonly string[]): Promise<Digest[]>;
  /** The receipts that accept these contents as results, by content. Syncs first. */
  receipts(contents: readonly Digest[]): Promise<Map<Digest, GivenReceipt>>;
  close(): Promise<void>;
}

export async function openSealedIndex(root: string): Promise<SealedIndex> {
  const catalog = openCatalog(root);
  let syncing: Promise<unknown> = catalog.sync();
  await syncing;
  const lookAfresh = async () => {
    // A running sync may already have passed the records we need, so another sync follows it.
    syncing = syncing.then(() => catalog.sync());
    await syncing;
  };
  return {
    async find(ids, { fresh, accept = async () => true }) {
      if (fresh) await lookAfresh();
      const found: SealedArtifact[] = [];
      for (const content of ids.flatMap((id) => named(catalog, id))) {
        const signed = catalog
          .referrersOfKind(content, RolloutEnvelope.kind)
          .map((envelope) => {
            const attestations = catalog.referrersOfKind(envelope, Attestation.kind);
            return { content, envelope, attestations };
          })
          .filter(({ attestations }) => attestations.length > 0);
        if (signed.length > 0 && (await accept(content))) found.push(...signed);
      }
      return found;
    },
    among: (ids) => new Set(catalog.digestsOf(RolloutContent.kind, ids).map(({ id }) => id)),
    async contents(ids) {
      await lookAfresh();
      return ids.flatMap((id) => named(catalog, id));
    },
    async receipts(contents) {
      await lookAfresh();
      const given = new Map<Digest, GivenReceipt>();
      for (const content of contents)
        for (const digest of catalog.referrersOfKind(content, Receipt.kind)) {
          const { outcome, claim } = catalog.record(digest)!.fields as {
            outcome: ReceiptOutcome;
            claim?: string;
          };
          // A receipt without a claim judges the artifact. It is not the result of an item.
          if (claim !== undefined && isTaken(outcome) && !given.has(content))
            given.set(content, { digest, outcome });
        }
      return given;
    },
    async close() {
      await syncing.catch(() => {});
      catalog.close();
    },
  };
}

function named(catalog: Catalog, id: string): Digest[] {
  const found = catalog.digestsOf(RolloutContent.kind, [id]);
  return found.map(({ digest }) => digest).sort();
}
