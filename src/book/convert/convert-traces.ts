/** Imports the traces of another program into a book, or writes them to a file of rollouts in the exchange form.
 *  In: a file of verifiers or ATIF. Out: counts of the traces. A bad trace stops everything: nothing enters the
 *  book. */
import {
  type Digest,
  digestJson,
  isRollbookError,
  type Json,
  parseId,
  RollbookError,
} from "../../base/index.ts";
import {
  Assignment,
  EnvironmentPackage,
  encodeWire,
  loggedPolicy,
  PolicyRevision,
  parseRolloutDraft,
  type SealedRollout,
  sealRollout,
  Task,
} from "../../contract/index.ts";
import { readTraces, type TraceFormatName } from "../../convert/formats/index.ts";
import { type ImportReport, importRollouts } from "../import/index.ts";
import type { OpenBook } from "../open/index.ts";

interface TraceRequest {
  readonly from: TraceFormatName;
  readonly file: string;
  /** Data source of traces that do not state it (default: real). */
  readonly dataSource?: "real" | "synthetic" | undefined;
}

interface TracesRead {
  readonly rollouts: number;
  /** Traces with our extras whose rollout has the digest of the exported rollout. */
  readonly identical: number;
}

export async function importTraces(
  book: OpenBook,
  request: TraceRequest,
): Promise<TracesRead & { readonly imported: ImportReport | null }> {
  const count = { rollouts: 0, identical: 0 };
  // A rollout that is already in the book keeps its envelope, which names the program that ran it.
  const isKnown = async (content: Digest) => (await book.store.get(content)) !== undefined;
  const records = recordsOf(request, { count, isKnown });
  const first = await records.next();
  if (first.done === true) return { ...count, imported: null };
  const stream = (async function* () {
    yield lineOf(first.value);
    for await (const record of records) yield lineOf(record);
  })();
  const imported = await importRollouts(book, { name: request.file, stream }, { strict: true });
  return { ...count, imported };
}

/** Writes the traces as `rollbook.rollout.v1`, which `artifact import` reads. The file must not exist. */
export async function convertTraces(request: TraceRequest & { readonly out: string }): Promise<TracesRead> {
  const { writeNewFile } = await import("../../convert/new-file.ts");
  const count = { rollouts: 0, identical: 0 };
  await writeNewFile(request.out, async (file) => {
    for await (const record of recordsOf(request, { count })) file.append(lineOf(record));
  });
  return count;
}

function lineOf(record: Json): Buffer {
  return Buffer.from(`${JSON.stringify(record)}\n`);
}

/** Kinds of record that a trace may carry: the kinds that a rollout refers to. */
const TRAVELLING: ReadonlySet<string> = new Set(
  [EnvironmentPackage, Task, Assignment, PolicyRevision].map(({ kind }) => kind),
);

function sealed(rollout: Record<string, Json>, where: string): SealedRollout {
  try {
    return sealRollout(parseRolloutDraft(rollout, where));
  } catch (error) {
    if (!isRollbookError(error) || error.message.startsWith(where)) throw error;
    throw new RollbookError(error.code, { ...error.fields, where }, `${where}: ${error.message}`, {
      cause: error,
    });
  }
}

/** Seals every rollout here first, so that the error for a trace that breaks a record rule names its place in the
 *  file. */
async function* recordsOf(
  { from, file, dataSource = "real" }: TraceRequest,
  {
    count,
    isKnown = async () => false,
  }: { count: { rollouts: number; identical: number }; isKnown?: (content: Digest) => Promise<boolean> },
): AsyncGenerator<Json> {
  const policy = loggedPolicy(parseId(from)).record;
  let named = false;
  const sent = new Set<Digest>();
  for await (const { rollout, records, where } of readTraces(file, { from, dataSource })) {
    count.rollouts++;
    const { content } = sealed(rollout, where);
    const { origin } = rollout.envelope as { origin: { fields: { content?: string } } };
    const { content: exported } = origin.fields;
    if (exported === content.digest) {
      count.identical++;
      if (await isKnown(content.digest)) continue;
    }
    // A trace that was edited or not carried completely is another rollout. Two contents with one id would hide one of
    // them.
    const isOther = exported !== undefined && exported !== content.digest;
    const isLogged = content.record.streams.some(({ family }) => family === from);
    if (isLogged && !named) yield encodeWire(PolicyRevision, policy) as Json;
    named ||= isLogged;
    for (const record of records) {
      const digest = digestJson("rollbook.trace-record.v1", record);
      if (!TRAVELLING.has(String(record.schema)) || sent.has(digest)) continue;
      sent.add(digest);
      yield record;
    }
    yield isOther ? { ...rollout, rolloutId: `${content.record.rolloutId}.${from}` } : rollout;
  }
  if (count.rollouts === 0)
    throw new RollbookError(
      "empty-log",
      { file, from },
      `${file} holds no ${from} trace. Check the file and --from.`,
    );
}
