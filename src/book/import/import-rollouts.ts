/** Imports records into a book from files, streams and objects: sealed, checked, signed, durable.
 *  In: an open book, inputs. Out: a report. Without `strict`, only bad records are refused. They are passed to
 *  `onRefusal`; without this callback, the import fails after all other records are in the book. */
import { plural, RollbookError } from "../../base/index.ts";
import type { PublicKey } from "../../contract/index.ts";
import type { OpenBook } from "../open/index.ts";
import { type ImportSummary, importFiles } from "./import-files.ts";
import type { ImportWarning } from "./import-watch.ts";
import type { PsionicAnswers } from "./prepare.ts";
import { type ImportSource, openSource, spool } from "./read-items.ts";

/** Bytes with a name for messages. */
export interface NamedStream {
  readonly name: string;
  readonly stream: AsyncIterable<Uint8Array>;
}

/** Path of a JSON or JSON Lines file, a stream of such bytes, or one record in its exchange form. */
export type ImportInput = string | AsyncIterable<Uint8Array> | NamedStream | ImportRecord;

export interface ImportRecord {
  readonly schema: string;
  readonly [field: string]: unknown;
}

interface ImportRequest extends PsionicAnswers {
  /** Writes nothing at all if one record is refused. */
  readonly strict?: boolean | undefined;
  readonly onRefusal?: (error: RollbookError) => void;
  readonly onProgress?: (items: number) => void;
}

export interface ImportReport extends ImportSummary {
  /** Key that signed the records; null if there is none. */
  readonly signedBy: PublicKey | null;
  /** Warnings about imported records that may cause a surprise later. */
  readonly warnings: readonly ImportWarning[];
}

export async function importRollouts(
  book: OpenBook,
  input: ImportInput | readonly ImportInput[],
  request: ImportRequest = {},
): Promise<ImportReport> {
  const { strict = false, onRefusal, onProgress = () => {}, logprobKind, dataSource } = request;
  const inputs = Array.isArray(input) ? (input as readonly ImportInput[]) : [input as ImportInput];
  const { sources, dispose } = await openAll(inputs, strict);
  const warnings: ImportWarning[] = [];
  let first: RollbookError | undefined;
  try {
    const summary = await importFiles(sources, {
      ...{ book: book.store, index: await book.index(), signer: book.signer, strict, onProgress },
      answers: { logprobKind, dataSource },
      onWarning: (warning) => warnings.push(warning),
      onRefusal(error) {
        first ??= error;
        onRefusal?.(error);
      },
    });
    if (onRefusal === undefined && first !== undefined) throw refusedError(summary, { strict, first });
    return { ...summary, signedBy: book.signer?.publicKey ?? null, warnings };
  } finally {
    await dispose();
  }
}

export function refusedError(
  summary: ImportSummary,
  { strict, first }: { strict: boolean; first?: RollbookError },
): RollbookError {
  const { imported, already, refused, repaired, signed } = summary;
  const rest = strict
    ? "Nothing was written, because of --strict."
    : imported + already + repaired === 0
      ? "Nothing was imported. Correct the input and import again; `rollbook data import` reads decision logs."
      : "The others are in the book; correct these and import again.";
  const why = first === undefined ? "" : ` The first: ${first.message}`;
  return new RollbookError(
    "import-refused",
    { imported, already, refused, repaired, signed },
    `${plural(refused, "record")} refused. ${rest}${why}`,
    { cause: first },
  );
}

/** Checks that every input can be read before anything is written. */
async function openAll(
  inputs: readonly ImportInput[],
  strict: boolean,
): Promise<{ sources: ImportSource[]; dispose(): Promise<void> }> {
  const sources: ImportSource[] = [];
  const spooled: Awaited<ReturnType<typeof spool>>[] = [];
  let records: object[] | undefined;
  for (const each of inputs) {
    if (isRecord(each)) {
      if (records === undefined) {
        records = [];
        sources.push(recordSource(records));
      }
      records.push(each);
      continue;
    }
    records = undefined;
    if (typeof each === "string") sources.push(await openSource(each));
    else {
      const { name, stream } = "stream" in each ? each : { name: "<stream>", stream: each };
      const source = { name, read: () => stream };
      // A strict import reads everything twice, which a stream does not allow.
      if (strict) spooled.push(await spool(source));
      sources.push(strict ? spooled.at(-1)! : source);
    }
  }
  return {
    sources,
    dispose: async () => void (await Promise.all(spooled.map((each) => each.dispose()))),
  };
}

function isRecord(input: ImportInput): input is ImportRecord {
  return typeof input === "object" && !(Symbol.asyncIterator in input) && !("stream" in input);
}

function recordSource(records: readonly object[]): ImportSource {
  return {
    name: "<records>",
    async *read() {
      for (const record of records) yield Buffer.from(`${JSON.stringify(record)}\n`);
    },
  };
}
