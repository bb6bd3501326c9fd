/** Removes unreferenced blobs of a book, and files that crashed writers left in its replay stores.
 *  In: an open book, or the directory of one. Out: a report. Safe while other processes write. Does not touch a
 *  damaged book. */
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { type Clock, systemClock } from "../../base/index.ts";
import type { Signer } from "../../contract/index.ts";
import { bucketUrlOf, type GcReport, collectGarbage as sweep } from "../../store/index.ts";
import {
  type BookOnDisk,
  headSigner,
  loadSigner,
  ownKeyring,
  requireBook,
  requireWritable,
  trustedSet,
} from "../open/index.ts";

interface GarbageReport extends GcReport {
  /** Paths of replay store segments that no manifest lists. */
  readonly orphans: readonly string[];
}

export async function collectGarbage(
  book: string | BookOnDisk,
  options: {
    dryRun?: boolean;
    clock?: Clock;
    signer?: () => Signer | undefined;
    /** Keys whose signed statement that a pack was replaced counts (default: the user's own key and the keys listed
     *  beside it). */
    trustedKeys?: Iterable<string>;
  } = {},
): Promise<GarbageReport> {
  const root = typeof book === "string" ? book : book.root;
  const clock = options.clock ?? (typeof book === "string" ? systemClock : book.clock);
  const { dryRun = false } = options;
  requireBook(root);
  requireWritable(root);
  const own = typeof book === "string" ? () => loadSigner(ownKeyring()) : () => book.signer;
  const signer = (options.signer ?? own)();
  const sign = headSigner(signer);
  const trusted = new Set(options.trustedKeys ?? trustedSet(ownKeyring()));
  const fold = signer === undefined ? undefined : { signer: signer.publicKey };
  const report = await sweep(root, { clock, dryRun, sign, trusted, fold });
  return { ...report, orphans: await collectReplay(root, dryRun) };
}

async function collectReplay(root: string, dryRun: boolean): Promise<string[]> {
  const url = bucketUrlOf(root);
  if (url !== undefined) {
    const { collectOrphansInBucket } = await import("../replay/index.ts");
    return collectOrphansInBucket(`${url.replace(/\/$/, "")}/replay`, { dryRun });
  }
  const folder = join(root, "replay");
  if (!existsSync(folder)) return [];
  const { collectOrphans, isReplayStore, listOrphans } = await import("../../keep/replay/index.ts");
  const stores = readdirSync(folder).map((name) => join(folder, name));
  const orphans: string[] = [];
  for (const store of stores.filter(isReplayStore)) {
    const found = dryRun ? listOrphans(store) : await collectOrphans(store);
    orphans.push(...found.map((path) => join(store, path)));
  }
  return orphans;
}
