/** Seals a rollback with its evidence: every paired difference in the order it was counted, and the rollouts behind
 *  it.
 *  In: the routers, the evidence. Out: a signed record in the book. */
import { bytesOf, type Column, columnTag, digestColumn, dtypeOf, parseId } from "../../base/index.ts";
import {
  type ColumnRef,
  type Manifest,
  Rollback,
  type Sealed,
  type SealedBlob,
  seal,
} from "../../contract/index.ts";
import type { HarmEvidence, Served } from "../../serve/index.ts";
import { makeSealer } from "../../store/index.ts";
import type { OpenBook } from "../open/index.ts";

export interface RolledBack {
  readonly from: Served;
  readonly to: Served;
  readonly family: string;
  readonly evidence: HarmEvidence;
  readonly feedback?: string | undefined;
  readonly manifest?: Sealed<Manifest> | undefined;
  readonly atMs: number;
}

export async function sealRollback(book: OpenBook, done: RolledBack): Promise<Sealed<Rollback>> {
  const { from, to, family, feedback, manifest, atMs } = done;
  const blobs: Omit<SealedBlob, "digest">[] = manifest === undefined ? [] : [manifest];
  const column = (values: Column): ColumnRef<never> => {
    const dtype = dtypeOf(values);
    blobs.push({ kind: columnTag(dtype), bytes: bytesOf(values) });
    return { digest: digestColumn(values), dtype, length: values.length } as ColumnRef<never>;
  };
  const { harm: _, waiting: __, terms, ids, range, ...evidence } = done.evidence;
  const record = seal(Rollback, {
    family: parseId(family, "family"),
    ...{ from: routerOf(from), to: routerOf(to) },
    ...(from.verdict === undefined ? {} : { verdict: from.verdict }),
    evidence: {
      method: "confidence-sequence",
      ...evidence,
      range: { low: range.low, high: range.high },
      ...(feedback === undefined ? {} : { feedback: parseId(feedback, "feedback") }),
      terms: column(terms),
      decisions: column(Buffer.from(ids.map((pair) => pair.join("\t")).join("\n"))),
      ...(manifest === undefined ? {} : { manifest: manifest.digest }),
    },
    by: "rollbook",
    atMs,
  });
  await makeSealer(book.store, book.signer).add({ envelope: record, blobs: [...blobs, record] });
  return record;
}

function routerOf({ digest, router: { policy } }: Served) {
  return { digest, ...(policy === undefined ? {} : { policy: policy.revision }) };
}
