/** Compares the claims of a token stream about its columns with the facts of these columns. */
import { RollbookError } from "../../base/index.ts";
import { COLUMN_NAMES, LOGPROB_TOLERANCE, onesInside, type TokenStream } from "../../contract/index.ts";
import type { BlobFact, BlobFacts } from "./blob-facts.ts";

/** False if a column has not been seen yet; the check must then be repeated at the end. */
export function checkColumns(facts: BlobFacts, stream: TokenStream, field: string): boolean {
  let complete = true;
  for (const name of COLUMN_NAMES) {
    const column = stream.columns[name];
    if (column === undefined) continue;
    const fact = facts.get(column.digest);
    if (fact === undefined) complete = false;
    else checkColumn(fact, { name, field, length: column.length, samples: stream.samples });
  }
  return complete;
}

/** True if one segment covers the whole stream: every sample lies in it under any mask. */
export function isCovered({ segments, length }: TokenStream): boolean {
  return segments.length === 1 && segments[0]!.end - segments[0]!.start === length;
}

/** Checks that every sampled token lies in a segment, by the starts and ends of the runs of the mask. */
export function checkRuns(stream: TokenStream, runs: Uint32Array, field: string): void {
  const inside = onesInside(stream.segments, runs);
  if (inside === stream.samples) return;
  const outside = stream.samples - inside;
  throw new RollbookError(
    "bad-mask",
    { field, outside },
    `${field}: ${outside} sampled tokens lie in no segment`,
  );
}

function checkColumn(
  fact: BlobFact,
  at: { name: string; field: string; length: number; samples: number },
): void {
  const bad = (code: string, what: string) => new RollbookError(code, {}, `${at.field}.${at.name} ${what}`);
  if (fact.length !== at.length)
    throw bad("length-mismatch", `has ${fact.length} values, the record says ${at.length}`);
  if (!fact.finite) throw bad("non-finite-number", "holds a number that is not finite");
  if (at.name === "logprobs" && fact.highest > LOGPROB_TOLERANCE)
    throw bad("bad-logprob", `reaches ${fact.highest}, a probability above 1`);
  if (at.name !== "mask" || fact.ones === at.samples) return;
  const what =
    fact.ones < 0
      ? "holds values other than 0 and 1"
      : `marks ${fact.ones} samples, the record says ${at.samples}`;
  throw bad("bad-mask", what);
}
