/** Writes rollouts in the format of a trainer or a trace tool: one complete file, or none.
 *  In: rollouts in the order that the format requires. Out: the file, the number of rows, and the lost fields. */
import { type Digest, plural, RollbookError } from "../../base/index.ts";
import {
  type FieldLoss,
  type HandedRollout,
  type HandoverBatch,
  type HandoverOptions,
  LossTally,
  ROLLOUT_PARTS,
  type TrainerFormat,
} from "../handover/index.ts";
import { type NewFile, writeNewFile } from "../new-file.ts";
import type { ReadTrace } from "../traces/index.ts";

export const TRAINER_FORMATS = [
  "slime",
  "slime-prompts",
  "verl",
  "verl-agent-loop",
  "trl-sft",
  "trl-dpo",
  "trl-kto",
  "trl-grpo",
  "trl-rollouts",
  "art",
  "verifiers",
  "atif",
] as const;
export type TrainerFormatName = (typeof TRAINER_FORMATS)[number];

export interface HandoverReport {
  readonly rows: number;
  /** Fields that the format cannot hold, with the number of rollouts that had them. */
  readonly losses: readonly FieldLoss[];
  readonly warnings: readonly string[];
}

/** Loads the format on demand. */
export async function trainerFormat(name: TrainerFormatName): Promise<TrainerFormat> {
  switch (name) {
    case "slime":
      return (await import("../slime/index.ts")).slimeSamples;
    case "slime-prompts":
      return (await import("../slime/index.ts")).slimePrompts;
    case "verl":
      return (await import("../verl/index.ts")).verlPrompts as TrainerFormat;
    case "verl-agent-loop":
      return (await import("../verl/index.ts")).verlAgentLoop as TrainerFormat;
    case "art":
      return (await import("../art/index.ts")).artTrajectories as TrainerFormat;
    case "verifiers":
      return (await import("../verifiers/index.ts")).verifiersTraces;
    case "atif":
      return (await import("../atif/index.ts")).atifTrajectories;
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

/** Formats whose files can be read back as rollouts. */
export const TRACE_FORMATS = ["verifiers", "atif"] as const;
export type TraceFormatName = (typeof TRACE_FORMATS)[number];

/** Reads rollouts in the exchange form with the records that they refer to, one at a time. */
export async function* readTraces(
  file: string,
  { from, dataSource }: { from: TraceFormatName; dataSource: "real" | "synthetic" },
): AsyncGenerator<ReadTrace> {
  switch (from) {
    case "verifiers":
      yield* (await import("../verifiers/index.ts")).readVerifiers(file, { dataSource });
      return;
    case "atif":
      yield* (await import("../atif/index.ts")).readAtif(file, { dataSource });
      return;
    default:
      from satisfies never;
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
  const seen = { rollouts: 0 };
  const rows = format.rows(counting(rollouts, seen), {
    batch,
    losses,
    options,
    warn: (message) => warnings.push(message),
  });
  let count = 0;
  await writeNewFile(out, async (file) => {
    count = await writeRows(format, { rows, file, batch: batch?.digest });
    if (count === 0)
      throw new RollbookError(
        "no-rows",
        { ...seen, losses: losses.list() },
        `no row can be written to ${out}: ${describe(losses, seen.rollouts)}. Check the filters, or choose another format.`,
      );
  });
  return { rows: count, losses: losses.list(), warnings };
}

async function* counting(
  rollouts: AsyncIterable<HandedRollout>,
  seen: { rollouts: number },
): AsyncGenerator<HandedRollout> {
  for await (const rollout of rollouts) {
    seen.rollouts++;
    yield rollout;
  }
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

/** Weight of a row in a row group: 1 per number, and 1 per 8 characters of text. */
function valuesIn(value: unknown): number {
  if (typeof value === "string") return 1 + value.length / 8;
  if (typeof value !== "object" || value === null) return 1;
  if (ArrayBuffer.isView(value)) return value.byteLength / 4;
  const inner: readonly unknown[] = Array.isArray(value) ? value : Object.values(value);
  // A list of numbers is long and flat, so its elements are not visited.
  if (inner.length > 64 && typeof inner[0] !== "object" && typeof inner[0] !== "string") return inner.length;
  return inner.reduce<number>((sum, each) => sum + valuesIn(each), 1);
}

/** Reasons why rollouts became no rows. Fields that rows lack are not reasons. */
function describe(losses: LossTally, rollouts: number): string {
  const parts: readonly string[] = ROLLOUT_PARTS;
  const list = losses.list().filter(({ field }) => !parts.includes(field));
  return list.length === 0
    ? rollouts === 0
      ? "no rollout is admitted"
      : `of ${plural(rollouts, "rollout")} none has a conversation that ends with a reply of the model. Decisions that \`data import\` read have none`
    : list.map(({ field, count }) => `${count} ${field}`).join(", ");
}
