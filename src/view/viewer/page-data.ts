/** Defines the data of the viewer's page, sent over HTTP or stored inside its own file. The page imports these types;
 *  it never reads a book. */
import type { BatchDetails } from "../../book/batches/index.ts";
import type { RolloutRow, Transcript, TranscriptCall, TranscriptTurn } from "../../book/rollouts/index.ts";
import type { GateVerdict } from "../../contract/index.ts";
import type { ChatPart } from "../../convert/chat/index.ts";

/** Part of a turn; `more` is the number of omitted characters. */
export type PagePart = ChatPart & { readonly more?: number };

interface PageTurn extends Omit<TranscriptTurn, "parts"> {
  readonly parts: readonly PagePart[];
}

export interface PageCall extends Omit<TranscriptCall, "turns" | "choices"> {
  readonly turns: readonly PageTurn[];
  /** One line for each choice of a router. */
  readonly choices: readonly string[];
}

export interface PageTranscript extends Omit<Transcript, "calls" | "choices"> {
  readonly calls: readonly PageCall[];
  /** Choices without a call, as those of a call. */
  readonly choices: readonly string[];
  /** Title of the task in the list; null if it has none. */
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
  /** Values offered in the filters. */
  readonly experiments: readonly string[];
  readonly models: readonly string[];
  readonly endings: readonly string[];
}

/** All data of a standalone page. */
export interface PageData {
  readonly book: BookFacts;
  readonly rollouts: readonly RolloutRow[];
  /** Keyed by the digest of the content. */
  readonly transcripts: Readonly<Record<string, PageTranscript>>;
  readonly batches: readonly PageBatch[];
  readonly verdicts: readonly PageVerdict[];
}

/** Record as JSON: bigints are text. */
type Wire = Readonly<Record<string, unknown>>;
