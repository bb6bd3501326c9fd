/** Brings the traces of another program into a book, or into a file of rollouts in the exchange form.
 *  In: a file of verifiers or ATIF. Out: what became of them. A bad trace stops everything: nothing enters the book. */
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
  /** What the traces are, where they do not say (default: real). */
  readonly dataSource?: "real" | "synthetic" | undefined;
}

interface TracesRead {
  readonly rollouts: number;
  /** Of those with our extras: how many are the rollouts that were exported, by digest. */
  readonly identical: number;
}

export async function importTraces(
  book: OpenBook,
  request: TraceRequest,
): Promise<TracesRead & { readonly imported: ImportReport | null }> {
  const count = { rollouts: 0, identical: 0 };
  // A rollout that is in the book keeps the envelope of who ran it.
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

/** Writes them as `rollbook.rollout.v1`, which `artifact import` reads. The file must not exist. */
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

/** The records that a trace may bring along: those that a rollout refers to. */
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

/** Every rollout is sealed here first: a trace that breaks a rule of records is named by its place. */
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
    // One that was edited, or not carried whole, is another rollout: two contents of one id would hide one of them.
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
