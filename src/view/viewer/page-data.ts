/** What the viewer's page is given, over HTTP or inside its own file. The page imports these types; it never sees a book. */
import type { BatchDetails } from "../../book/batches/index.ts";
import type { RolloutRow, Transcript, TranscriptCall, TranscriptTurn } from "../../book/rollouts/index.ts";
import type { GateVerdict } from "../../contract/index.ts";
import type { ChatPart } from "../../convert/chat/index.ts";

/** A part of a turn; `more` is how many characters were left out. */
export type PagePart = ChatPart & { readonly more?: number };

interface PageTurn extends Omit<TranscriptTurn, "parts"> {
  readonly parts: readonly PagePart[];
}

export interface PageCall extends Omit<TranscriptCall, "turns"> {
  readonly turns: readonly PageTurn[];
}

export interface PageTranscript extends Omit<Transcript, "calls"> {
  readonly calls: readonly PageCall[];
  /** What the list calls the task; null: it has no name. */
  readonly taskTitle: string | null;
}

export type PageBatch = Pick<BatchDetails, "digest"> & {
  readonly batch: Wire;
  readonly lineage: Wire;
  readonly ledger: Wire;
};

export interface PageVerdict {
  readonly digest: string;
  readonly verdict: Omit<GateVerdict, "seed">;
}

export interface BookFacts {
  readonly name: string;
  /** Values to choose from in the filters. */
  readonly experiments: readonly string[];
  readonly models: readonly string[];
  readonly endings: readonly string[];
}

/** Everything, for a page that stands alone. */
export interface PageData {
  readonly book: BookFacts;
  readonly rollouts: readonly RolloutRow[];
  /** By the digest of the content. */
  readonly transcripts: Readonly<Record<string, PageTranscript>>;
  readonly batches: readonly PageBatch[];
  readonly verdicts: readonly PageVerdict[];
}

/** A record as JSON: bigints are text. */
type Wire = Readonly<Record<string, unknown>>;
