/** `rollbook train`: from decisions to a checkpoint and its revision. */
import { readFileSync } from "node:fs";
import { type Command, InvalidArgumentError } from "commander";
import { parseJson } from "../../base/index.ts";
import {
  type DecisionData,
  fitStaticTable,
  trainBc,
  trainLinUcb,
  trainThompsonBeta,
  trainThompsonLinear,
  trainUcb1,
  withBaseline,
  withSplit,
} from "../../learn/index.ts";
import {
  CHECKPOINT_KIND,
  DEFAULT_FEATURES,
  type FeatureSpec,
  type PolicyModel,
  parseFeatureSpec,
  readCheckpoint,
  sealCheckpoint,
  writeCheckpoint,
} from "../../policy/index.ts";
import { addCommand, addGroup, seedOption, wholeNumber } from "../command.ts";
import { loadRows, toTrainingData } from "../dataset/load-rows.ts";
import { addRowOptions, type RowFlags, toDataFlags } from "../dataset/row-options.ts";
import { addSplitOptions, requirePart, type SplitFlags, splitRule, unitOf } from "../dataset/split-rows.ts";
import type { Io } from "../io.ts";
import { bookRoot, isBook, withBook } from "../open-book.ts";
import { jsonLine, plural, short } from "../output.ts";

interface TrainFlags extends RowFlags, SplitFlags {
  out: string;
  id: string;
  policy: string;
  parent?: string;
  features?: string;
  seed: bigint;
  l2?: number;
  alpha?: number;
  exploration?: number;
  form?: "beta" | "linear";
  draws?: number;
  floor?: number;
  json?: true;
}

/** A model, and what to say of its fit. */
interface Trained {
  readonly model: PolicyModel;
  readonly report?: object;
}

export function addTrain(program: Command, io: Io): void {
  const train = addGroup(program, "train", {
    summary: "train a policy from decisions into a checkpoint and a revision",
    examples: ["rollbook train bc --data routing.jsonl --out policies/bc --id router-bc"],
  });
  addTrainer(train, io, {
    name: "ucb",
    summary: "UCB1: the best candidate whatever the question",
    learn: fitUcb,
  }).option("--exploration <x>", "factor of the confidence width", positive, 1);
  addTrainer(train, io, {
    name: "linucb",
    summary: "LinUCB: one linear model per candidate",
    learn: fitLinUcb,
  })
    .option("--alpha <x>", "factor of the confidence width", positive, 1)
    .option("--features <file>", FEATURES_HELP);
  addTrainer(train, io, {
    name: "thompson",
    summary: "Thompson sampling, with Beta or linear-Gaussian posteriors",
    learn: fitThompson,
    example: " --form linear",
  })
    .option("--form <form>", "beta (rewards in 0 … 1) or linear", toForm, "beta")
    .option("--draws <n>", "Monte Carlo draws behind each probability", wholeNumber, 256)
    .option("--floor <p>", "least probability of a selectable candidate", positive, 0.01)
    .option("--features <file>", FEATURES_HELP);
  addTrainer(train, io, {
    name: "bc",
    summary: "behaviour cloning: the policy that made the log",
    learn: fitBc,
  })
    .option("--l2 <x>", "strength of the penalty", positive, 3e-3)
    .option("--features <file>", FEATURES_HELP);
}

const FEATURES_HELP = "a feature spec as JSON (default: see docs/learn.md)";

function addTrainer(
  train: Command,
  io: Io,
  trainer: {
    name: string;
    summary: string;
    learn(data: DecisionData, flags: TrainFlags): Trained;
    /** Flags of the example. */
    example?: string;
  },
): Command {
  const { name, summary, learn, example = "" } = trainer;
  const command = addCommand(train, name, {
    summary,
    description: `${summary[0]!.toUpperCase()}${summary.slice(1)}. The checkpoint is a function of rows, options and seed. It learns from the train split
and records it, so that evaluate and gate never judge it by rows it knows. From a dataset it is written to --out; from
the book it is sealed there too.`,
    examples: [
      `rollbook train ${name} --data routing.jsonl${example} --out policies/${name} --id router-${name}`,
    ],
  })
    .requiredOption("--out <dir>", "the checkpoint's folder; never overwritten")
    .requiredOption("--id <id>", "the id of the new revision")
    .option("--policy <family>", "the family of the new revision", "router")
    .option("--parent <dir>", "the checkpoint that this one succeeds")
    .addOption(seedOption("fixes splits and draws", 0n));
  return addRowOptions(addSplitOptions(command), { data: true }).action((flags: TrainFlags) =>
    runTrain(io, flags, learn),
  );
}

async function runTrain(
  io: Io,
  flags: TrainFlags,
  learn: (data: DecisionData, flags: TrainFlags) => Trained,
): Promise<void> {
  const rows = await loadRows(io, toDataFlags(flags));
  const rule = splitRule(flags);
  const train = rows.length === 0 ? rows : requirePart(rows, "train", rule);
  const data = toTrainingData(train);
  const { model: learned, report } = learn(data, flags);
  const units = { train: train.map((row) => unitOf(row, rule.unit)), calibration: [] };
  const model = withRival(withSplit(learned, { rule, units }), data);
  const parent = flags.parent === undefined ? undefined : readCheckpoint(flags.parent).revision.record;
  const checkpoint = sealCheckpoint(model, {
    family: flags.policy,
    id: flags.id,
    ...(parent === undefined ? {} : { parent }),
    batches: data.batches,
    seed: flags.seed,
    producedAtMs: io.clock.nowMs(),
  });
  writeCheckpoint(flags.out, checkpoint);
  const { record, digest, bytes, kind } = checkpoint.revision;
  const sealed = flags.data === undefined && isBook(bookRoot(io, flags));
  if (sealed)
    await withBook(io, { ...flags, mode: "write" }, async (book) => {
      book.put(CHECKPOINT_KIND, checkpoint.bytes);
      book.put(kind, bytes);
      await book.flush();
    });
  const facts = {
    out: flags.out,
    id: record.id,
    revision: digest,
    weights: record.digest,
    rows: data.rows.length,
    heldBack: rows.length - data.rows.length,
  };
  io.out(
    flags.json
      ? jsonLine({
          ...facts,
          data: data.digest,
          arms: model.arms,
          sealed,
          ...(report === undefined ? {} : { report }),
        })
      : `${record.id}: ${model.kind} over ${model.arms.join(", ")} from ${plural(data.rows.length, "row")} of ${rows.length}, weights ${short(record.digest)}: ${flags.out}\n`,
  );
}

/** What a person could have written from the same rows. Without outcomes there is no such table. */
function withRival(model: PolicyModel, data: DecisionData): PolicyModel {
  return data.rows.some((row) => row.reward !== null) ? withBaseline(model, fitStaticTable(data)) : model;
}

function fitUcb(data: DecisionData, { exploration = 1 }: TrainFlags): Trained {
  return { model: trainUcb1(data, { exploration }) };
}

function fitLinUcb(data: DecisionData, flags: TrainFlags): Trained {
  return { model: trainLinUcb(data, { spec: denseSpec(data, flags), alpha: flags.alpha ?? 1 }) };
}

function fitThompson(data: DecisionData, flags: TrainFlags): Trained {
  const { draws = 256, floor = 0.01, form = "beta" } = flags;
  const options = { draws, floor, seed: Number(flags.seed & 0x1fffffffffffffn) };
  if (form === "beta") return { model: trainThompsonBeta(data, options) };
  return { model: trainThompsonLinear(data, { ...options, spec: denseSpec(data, flags) }) };
}

function fitBc(data: DecisionData, flags: TrainFlags): Trained {
  const spec = readSpec(flags) ?? { ...DEFAULT_FEATURES, fields: fieldsOf(data) };
  return trainBc(data, { spec, seed: flags.seed, l2: flags.l2 ?? 3e-3 });
}

function readSpec({ features }: TrainFlags): FeatureSpec | undefined {
  if (features === undefined) return undefined;
  return parseFeatureSpec(parseJson(readFileSync(features, "utf8"), features), features);
}

/** Linear bandits keep a dense matrix: few word buckets, and the fields. */
function denseSpec(data: DecisionData, flags: TrainFlags): FeatureSpec {
  return readSpec(flags) ?? { ...DEFAULT_FEATURES, wordBuckets: 16, fields: fieldsOf(data) };
}

/** At most this many fields are taken unasked; a spec can name any. */
const MOST_FIELDS = 16;

/** The fields that occur, by name: numbers as numbers, everything else as a category of 16 buckets. */
function fieldsOf(data: DecisionData): FeatureSpec["fields"] {
  const kinds = new Map<string, "number" | "category">();
  for (const { context } of data.rows)
    for (const [name, value] of Object.entries(context.fields)) {
      if (typeof value === "string") kinds.set(name, "category");
      else if (!kinds.has(name)) kinds.set(name, "number");
    }
  return [...kinds]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .slice(0, MOST_FIELDS)
    .map(([name, kind]) => (kind === "number" ? { name, kind } : { name, kind, buckets: 16 }));
}

function positive(text: string): number {
  const value = Number(text);
  if (!Number.isFinite(value) || value < 0 || text.trim() === "")
    throw new InvalidArgumentError("It must be a number ≥ 0.");
  return value;
}

function toForm(text: string): "beta" | "linear" {
  if (text === "beta" || text === "linear") return text;
  throw new InvalidArgumentError("It must be beta or linear.");
}
