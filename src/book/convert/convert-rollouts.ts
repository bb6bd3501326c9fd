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
import { RECORD_TOKENS } from "../../keep/batch/index.ts";
import { readBatch } from "../batches/index.ts";
import type { DecisionRequest } from "../decisions/index.ts";
import type { OpenBook } from "../open/index.ts";
import type { AdmittedRollouts } from "../rollouts/index.ts";
import { everyAdmitted } from "./every-admitted.ts";
import { handoverBatch, rolloutSource, rolloutsOfAdmitted, rolloutsOfBatch } from "./gather-rollouts.ts";

interface ConvertRequest extends HandoverOptions {
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

/** Which formats an option changes. */
const OPTION_FORMATS: Readonly<Record<keyof HandoverOptions, readonly TrainerFormatName[]>> = {
  uneven: ["slime"],
  failures: ["slime"],
  threshold: ["trl-kto"],
  minGap: ["trl-dpo"],
};

/** An option without an effect is a mistake of the caller: the file would not be what was asked for. */
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

/** As the command line spells it. */
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
    `batch ${short(batch)} holds steps, and ${format} needs tokens with log-probabilities. If the book holds tokens, cut a batch with --level token. ${RECORD_TOKENS}. Or choose a format of conversations such as trl-sft.`,
  );
}
