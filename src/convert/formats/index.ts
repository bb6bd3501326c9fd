/** Writes rollouts in the format of a trainer or a trace tool: one file, there whole or not at all.
 *  In: rollouts in the order the format asks for. Out: the file, how many rows, and what the format could not carry. */
import { type Digest, RollbookError } from "../../base/index.ts";
import {
  type FieldLoss,
  type HandedRollout,
  type HandoverBatch,
  type HandoverOptions,
  LossTally,
  type TrainerFormat,
} from "../handover/index.ts";
import { type NewFile, writeNewFile } from "../new-file.ts";

export const TRAINER_FORMATS = [
  "slime",
  "slime-prompts",
  "trl-sft",
  "trl-dpo",
  "trl-kto",
  "trl-grpo",
  "trl-rollouts",
] as const;
export type TrainerFormatName = (typeof TRAINER_FORMATS)[number];

export interface HandoverReport {
  readonly rows: number;
  /** What rollouts had and the format cannot carry: how many rollouts had it. */
  readonly losses: readonly FieldLoss[];
  readonly warnings: readonly string[];
}

/** Loaded when asked for. */
export async function trainerFormat(name: TrainerFormatName): Promise<TrainerFormat> {
  switch (name) {
    case "slime":
      return (await import("../slime/index.ts")).slimeSamples;
    case "slime-prompts":
      return (await import("../slime/index.ts")).slimePrompts;
    case "trl-sft":
      return (await import("../trl/index.ts")).trlSft;
    case "trl-dpo":
      return (await import("../trl/index.ts")).trlDpo;
    case "trl-kto":
      return (await import("../trl/index.ts")).trlKto;
    case "trl-grpo":
      return (await import("../trl/index.ts")).trlGrpo;
    case "trl-rollouts":
      return (await import("../trl/index.ts")).trlRollouts;
    default:
      return name satisfies never;
  }
}

export async function writeHandover(
  format: TrainerFormat,
  request: {
    readonly rollouts: AsyncIterable<HandedRollout>;
    readonly batch: HandoverBatch | null;
    readonly options: HandoverOptions;
    readonly out: string;
  },
): Promise<HandoverReport> {
  const { rollouts, batch, options, out } = request;
  const losses = new LossTally();
  const warnings: string[] = [];
  const rows = format.rows(rollouts, { batch, losses, options, warn: (message) => warnings.push(message) });
  let count = 0;
  await writeNewFile(out, async (file) => {
    count = await writeRows(format, { rows, file, batch: batch?.digest });
    if (count === 0)
      throw new RollbookError(
        "no-rows",
        { losses: losses.list() },
        `no row can be written to ${out}: ${describe(losses)}. Check the filters, or choose another format.`,
      );
  });
  return { rows: count, losses: losses.list(), warnings };
}

async function writeRows(
  format: TrainerFormat,
  { rows, file, batch }: { rows: AsyncIterable<object>; file: NewFile; batch: Digest | undefined },
): Promise<number> {
  const { columns } = format;
  if (columns !== undefined) {
    const { writeParquetRows } = await import("../parquet/index.ts");
    const metadata = { rollbook: JSON.stringify({ batch: batch ?? null }) };
    return writeParquetRows({ rows, columns, metadata, sizeOf: valuesIn }, file);
  }
  let count = 0;
  for await (const row of rows) {
    file.append(Buffer.from(`${JSON.stringify(row)}\n`));
    count++;
  }
  return count;
}

/** Lists are long, everything else counts little. */
function valuesIn(row: object): number {
  let values = 8;
  for (const each of Object.values(row)) if (Array.isArray(each)) values += each.length;
  return values;
}

function describe(losses: LossTally): string {
  const list = losses.list().slice(0, 3);
  return list.length === 0
    ? "there are no rollouts"
    : list.map(({ field, count }) => `${count} ${field}`).join(", ");
}
