/** Exports rollouts of a book to a trainer or a trace tool, as one file of its format.
 *  In: an open book, a format, a sealed batch or filters. Out: the file, and a list of facts that the format could
 *  not carry. The file is either written completely or not at all. Does not change the book. */
import { type Digest, given, RollbookError, short } from "../../base/index.ts";
import {
  type HandoverReport,
  type TrainerFormatName,
  trainerFormat,
  writeHandover,
} from "../../convert/formats/index.ts";
import type { HandoverOptions } from "../../convert/handover/index.ts";
import { RECORD_TOKENS } from "../../keep/batch/index.ts";
import { readBatch } from "../batches/index.ts";
import type { DecisionRequest } from "../decisions/index.ts";
import type { OpenBook } from "../open/index.ts";
import type { AdmittedRollouts } from "../rollouts/index.ts";
import { everyAdmitted } from "./every-admitted.ts";
import { handoverBatch, rolloutSource, rolloutsOfAdmitted, rolloutsOfBatch } from "./gather-rollouts.ts";

interface ConvertRequest extends HandoverOptions {
  readonly to: TrainerFormatName;
  /** Path of the new file; it must not exist. */
  readonly out: string;
  /** Digest of a batch, or its first digits. Token formats require a batch. */
  readonly batch?: string | undefined;
  /** Selects rollouts if no batch is given. */
  readonly filter?: DecisionRequest | undefined;
}

export interface ConvertedRollouts extends HandoverReport {
  readonly to: TrainerFormatName;
  readonly out: string;
  readonly batch: Digest | null;
  /** Admitted rollouts and the ledgers of the others; empty if a batch was given. */
  readonly admitted: readonly AdmittedRollouts[];
}

export async function convertRollouts(book: OpenBook, request: ConvertRequest): Promise<ConvertedRollouts> {
  const { to, out, batch: name, filter = {} } = request;
  const options: HandoverOptions = given({
    ...{ uneven: request.uneven, failures: request.failures },
    ...{ threshold: request.threshold, minGap: request.minGap },
  });
  requireUsed(request);
  const format = await trainerFormat(to);
  if (name === undefined) {
    if (format.from === "tokens") throw needsBatch(to);
    const source = await rolloutSource(book, `data convert --to ${to}`);
    const admitted = await everyAdmitted(book, filter);
    const rollouts = rolloutsOfAdmitted(source, admitted, format.together);
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
  const source = await rolloutSource(book, `batch ${short(batch.digest)}`);
  const rollouts = rolloutsOfBatch(source, batch, format.together);
  const report = await writeHandover(format, { rollouts, batch: handoverBatch(batch), options, out });
  return { to, out, batch: batch.digest, admitted: [], ...report };
}

/** Formats that each option affects. */
const OPTION_FORMATS: Readonly<Record<keyof HandoverOptions, readonly TrainerFormatName[]>> = {
  uneven: ["slime"],
  failures: ["slime"],
  threshold: ["trl-kto"],
  minGap: ["trl-dpo"],
};

/** Refuses an option that has no effect: the file would not be what the caller asked for. */
function requireUsed(request: ConvertRequest): void {
  const { to, batch, filter = {} } = request;
  for (const [option, formats] of Object.entries(OPTION_FORMATS))
    if (request[option as keyof HandoverOptions] !== undefined && !formats.includes(to))
      throw new RollbookError(
        "wrong-usage",
        { option, format: to },
        `${flagOf(option)} has no effect on ${to}: it belongs to ${formats.join(", ")}. Remove it.`,
      );
  const [idle] = Object.entries(filter).find(([, value]) => value !== undefined) ?? [];
  if (batch !== undefined && idle !== undefined)
    throw new RollbookError(
      "wrong-usage",
      { option: idle, batch },
      `${flagOf(idle)} has no effect with --batch: the rows of a batch are fixed. Remove one of them.`,
    );
}

/** Name of the option on the command line. */
function flagOf(option: string): string {
  if (option === "experiment") return "--exp";
  return `--${option.replace(/Ms$/, "").replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}

function needsBatch(format: string): RollbookError {
  return new RollbookError(
    "wrong-usage",
    { format },
    `the format ${format} needs a sealed batch of tokens. Assemble one with \`rollbook batch assemble --target REVISION --level token\` and name it with --batch. ${RECORD_TOKENS}.`,
  );
}

function noTokens(format: string, batch: Digest): RollbookError {
  return new RollbookError(
    "no-logprobs",
    { format, batch },
    `batch ${short(batch)} holds steps, and ${format} needs tokens with log-probabilities. If the book holds tokens, assemble a batch with \`rollbook batch assemble --target REVISION --level token\`. ${RECORD_TOKENS}. Or choose a format of conversations such as trl-sft.`,
  );
}
