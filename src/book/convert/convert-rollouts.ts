/** Hands rollouts of a book over to a trainer or a trace tool, as one file of its format.
 *  In: an open book, a format, a sealed batch or filters. Out: the file, and what the format could not carry. The file is
 *  there whole or not at all. Does not change the book. */
import { type Digest, given, RollbookError, short } from "../../base/index.ts";
import {
  type HandoverReport,
  type TrainerFormatName,
  trainerFormat,
  writeHandover,
} from "../../convert/formats/index.ts";
import type { HandoverOptions } from "../../convert/handover/index.ts";
import { readBatch } from "../batches/index.ts";
import { type DecisionRequest, everyAdmitted } from "../decisions/index.ts";
import { type OpenBook, readOf } from "../open/index.ts";
import type { AdmittedRollouts } from "../rollouts/index.ts";
import { handoverBatch, rolloutsOfAdmitted, rolloutsOfBatch } from "./gather-rollouts.ts";

export interface ConvertRequest extends HandoverOptions {
  readonly to: TrainerFormatName;
  /** A free path. */
  readonly out: string;
  /** Digest of a batch, or its first digits. Formats of tokens need one. */
  readonly batch?: string | undefined;
  /** Without a batch: which rollouts. */
  readonly filter?: DecisionRequest | undefined;
}

export interface ConvertedRollouts extends HandoverReport {
  readonly to: TrainerFormatName;
  readonly out: string;
  readonly batch: Digest | null;
  /** Without a batch: what was admitted, and the ledgers of the rest. */
  readonly admitted: readonly AdmittedRollouts[];
}

export async function convertRollouts(book: OpenBook, request: ConvertRequest): Promise<ConvertedRollouts> {
  const { to, out, batch: name, filter = {} } = request;
  const options: HandoverOptions = given({
    ...{ uneven: request.uneven, failures: request.failures },
    ...{ threshold: request.threshold, minGap: request.minGap },
  });
  const format = await trainerFormat(to);
  if (name === undefined) {
    if (format.from === "tokens") throw needsBatch(to);
    const read = readOf(book, `data convert --to ${to}`);
    const admitted = await everyAdmitted(book, filter);
    const rollouts = rolloutsOfAdmitted(read, admitted, format.together);
    return {
      to,
      out,
      batch: null,
      admitted,
      ...(await writeHandover(format, { rollouts, batch: null, options, out })),
    };
  }
  const batch = await readBatch(book, name);
  if (format.from === "tokens" && batch.level !== "token") throw noTokens(to, batch.digest);
  const read = readOf(book, `batch ${short(batch.digest)}`);
  const rollouts = rolloutsOfBatch(read, batch, format.together);
  const report = await writeHandover(format, { rollouts, batch: handoverBatch(batch), options, out });
  return { to, out, batch: batch.digest, admitted: [], ...report };
}

function needsBatch(format: string): RollbookError {
  return new RollbookError(
    "wrong-usage",
    { format },
    `${format} holds the tokens of a sealed batch. Cut one with \`rollbook batch assemble --level token\` and name it with --batch.`,
  );
}

function noTokens(format: string, batch: Digest): RollbookError {
  return new RollbookError(
    "no-logprobs",
    { format, batch },
    `batch ${short(batch)} holds steps, and ${format} needs tokens with log-probabilities. Cut a batch with --level token, or choose a format of conversations such as trl-sft.`,
  );
}
