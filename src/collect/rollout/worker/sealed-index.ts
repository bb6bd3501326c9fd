/** Which rollouts the book holds already, by their ids: what a worker that died had sealed but not reported; and the
 *  receipts that were given. In: a book's directory. Out: digests. Reads through the catalog; changes no record. */
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
  /** By whomever. */
  readonly attestations: readonly Digest[];
}

export interface GivenReceipt {
  readonly digest: Digest;
  readonly outcome: ReceiptOutcome;
}

export interface SealedIndex {
  /** Artifacts under these ids that `accept` takes, the signed ones only.
   *  `fresh`: also what was sealed since the last look, by whomever. */
  find(
    ids: readonly string[],
    options: { fresh: boolean; accept?: (content: Digest) => Promise<boolean> },
  ): Promise<SealedArtifact[]>;
  /** Those of the ids that have contents. `find` of the others finds nothing, unless it looks afresh. */
  among(ids: readonly string[]): ReadonlySet<string>;
  /** The contents under these ids, signed or not; looks afresh. */
  contents(ids: readonly string[]): Promise<Digest[]>;
  /** The receipts that take these contents as results, by content; looks afresh. */
  receipts(contents: readonly Digest[]): Promise<Map<Digest, GivenReceipt>>;
  close(): Promise<void>;
}

export async function openSealedIndex(root: string): Promise<SealedIndex> {
  const catalog = openCatalog(root);
  let syncing: Promise<unknown> = catalog.sync();
  await syncing;
  const lookAfresh = async () => {
    // A look that is under way may have passed what we ask for: begin another after it.
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
          // Without a claim the receipt is a judgement of the artifact, not the result of an item.
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
