/** What a token stream claims of its columns, held against what was seen of them. */
import { RollbookError } from "../../base/index.ts";
import { COLUMN_NAMES, LOGPROB_TOLERANCE, onesInside, type TokenStream } from "../../contract/index.ts";
import type { BlobFact, BlobFacts } from "./blob-facts.ts";

/** False if a column has not been seen yet, so that the check has to be made again at the end. */
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

/** One segment over the whole stream: every sample lies in it, whatever the mask says. */
export function isCovered({ segments, length }: TokenStream): boolean {
  return segments.length === 1 && segments[0]!.end - segments[0]!.start === length;
}

/** Every sampled token lies in a segment, told by where the ones of the mask begin and end. */
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
