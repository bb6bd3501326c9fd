/** Reads a book for the viewer.
 *  In: an open book. Out: rows, transcripts, batches and verdicts in the form of the page. Cuts long texts, so that a
 *  browser never receives a message of unlimited length. Writes nothing. */
import { basename, dirname, resolve } from "node:path";
import type { Digest } from "../../base/index.ts";
import { showBatch } from "../../book/batches/index.ts";
import type { OpenBook } from "../../book/open/index.ts";
import { facetsOf, listRollouts, type RolloutQuery, readTranscript } from "../../book/rollouts/index.ts";
import {
  encodeWire,
  GateVerdict,
  LossLedger,
  PolicyRevisionLineage,
  TrainerBatch,
  taskTitle,
} from "../../contract/index.ts";
import { readRecord } from "../../store/index.ts";
import { choiceText } from "../rollouts/choice-text.ts";
import type { BookFacts, PageBatch, PageData, PagePart, PageTranscript, PageVerdict } from "./page-data.ts";

/** Maximum characters of one part, and of one transcript. Beyond the second limit, parts keep only their beginning. */
const PART_CHARACTERS = 65_536;
const TRANSCRIPT_CHARACTERS = 4_000_000;
const BRIEF_CHARACTERS = 200;
/** Maximum characters of one part if many transcripts share one file. */
const FILE_PART_CHARACTERS = 16_384;

export async function readPageTranscript(
  book: OpenBook,
  name: string,
  partCharacters = PART_CHARACTERS,
): Promise<PageTranscript> {
  const transcript = await readTranscript(book, name);
  let left = TRANSCRIPT_CHARACTERS;
  const cut = (part: PagePart): PagePart => {
    const [text, field] = textOf(part);
    const most = left > 0 ? partCharacters : BRIEF_CHARACTERS;
    left -= Math.min(text.length, most);
    if (text.length <= most) return part;
    return { ...part, [field]: text.slice(0, most), more: text.length - most };
  };
  const calls = transcript.calls.map((call) => ({
    ...call,
    turns: call.turns.map((turn) => ({ ...turn, parts: turn.parts.map(cut) })),
    choices: call.choices.map(choiceText),
  }));
  return {
    ...transcript,
    calls,
    choices: transcript.choices.map(choiceText),
    taskTitle: taskTitle(transcript.task as Parameters<typeof taskTitle>[0]),
  };
}

export function bookFacts(book: OpenBook, rows: PageData["rollouts"]): BookFacts {
  const root = resolve(book.root);
  const name = basename(root) === ".rollbook" ? basename(dirname(root)) : basename(root);
  return { name, ...facetsOf(rows) };
}

export async function readBatches(book: OpenBook): Promise<PageBatch[]> {
  const found = (await book.index()).ofKind(TrainerBatch.kind);
  return Promise.all(found.map(({ digest }) => readBatch(book, digest)));
}

async function readBatch(book: OpenBook, digest: Digest): Promise<PageBatch> {
  const { batch, lineage, ledger } = await showBatch(book, digest);
  return {
    digest,
    batch: encodeWire(TrainerBatch, batch) as PageBatch["batch"],
    lineage: encodeWire(PolicyRevisionLineage, lineage) as PageBatch["batch"],
    ledger: encodeWire(LossLedger, ledger) as PageBatch["batch"],
  };
}

/** Verdicts of the book, latest first. */
export async function readVerdicts(book: OpenBook): Promise<PageVerdict[]> {
  const found = (await book.index()).ofKind(GateVerdict.kind);
  const verdicts = await Promise.all(
    found.map(async ({ digest }) => {
      const { seed: _, ...verdict } = await readRecord(book.store, GateVerdict, digest);
      return { digest, verdict };
    }),
  );
  return verdicts.sort((a, b) => b.verdict.atMs - a.verdict.atMs);
}

/** Reads all data of a standalone file. */
export async function readPageData(book: OpenBook, query: RolloutQuery): Promise<PageData> {
  const rollouts = await listRollouts(book, query);
  const transcripts: Record<string, PageTranscript> = {};
  for (const { content } of rollouts)
    transcripts[content] = await readPageTranscript(book, content, FILE_PART_CHARACTERS);
  return {
    book: bookFacts(book, rollouts),
    ...{ rollouts, transcripts, batches: await readBatches(book), verdicts: await readVerdicts(book) },
  };
}

function textOf(part: PagePart): [text: string, field: string] {
  switch (part.kind) {
    case "text":
    case "thinking":
    case "tool-result":
      return [part.text, "text"];
    case "tool-call":
      return [part.arguments, "arguments"];
    case "media":
      return [part.source, "source"];
    case "other":
      return [part.json, "json"];
    default:
      return part satisfies never;
  }
}
