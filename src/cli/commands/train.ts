/** `rollbook train`: from decisions to a checkpoint and its revision. */
import { type Command, InvalidArgumentError } from "commander";
import type { Digest } from "../../base/index.ts";
import { unitOf } from "../../convert/judged-rows.ts";
import {
  type BanditStatistics,
  collectFields,
  type DecisionData,
  type DecisionRow,
  denseSpec,
  fieldsOf,
  fitStaticTable,
  linUcbModel,
  type SplitRule,
  statisticsOf,
  thompsonBetaModel,
  thompsonLinearModel,
  trainBc,
  ucb1Model,
  withBaseline,
} from "../../learn/index.ts";
import { DEFAULT_FEATURES, type FeatureSpec, type PolicyModel } from "../../policy/index.ts";
import { addCommand, addGroup, seedOption, wholeNumber } from "../command.ts";
import { banditOfBook } from "../../book/train/bandit-of-book.ts";
import { readSpec } from "../../book/train/read-spec.ts";
import { loadRows, toTrainingData } from "../../book/decisions/load-rows.ts";
import { addRowOptions, toDataFlags } from "../options/row-options.ts";
import { addSplitOptions, requirePart, splitRule } from "../../book/decisions/split-rows.ts";
import type { Io } from "../io.ts";
import { addPromiseOptions, share } from "../options/judge-options.ts";
import { keepTrained, type Trained, type TrainFlags } from "../../book/train/keep-trained.ts";

/** A bandit is a model of sums: of the rows of a file, or of the state in the book. */
interface Bandit {
  isLinear(flags: TrainFlags): boolean;
  /** `spec` is there if it is linear. */
  model(
    statistics: BanditStatistics,
    options: { flags: TrainFlags; data: Digest; spec: FeatureSpec | undefined },
  ): PolicyModel;
}

export function addTrain(program: Command, io: Io): void {
  const train = addGroup(program, "train", {
    summary: "train a policy from decisions into a checkpoint and a revision",
    examples: ["rollbook train bc --data routing.jsonl --out policies/bc --id router-bc"],
  });
  addTrainer(train, io, {
    name: "ucb",
    summary: "UCB1: the best candidate whatever the question",
    note: STATE_NOTE,
    learn: (flags) => trainBandit(io, flags, UCB1),
  }).option("--exploration <x>", "factor of the confidence width", positive, 1);
  addTrainer(train, io, {
    name: "linucb",
    summary: "LinUCB: one linear model per candidate",
    note: STATE_NOTE,
    learn: (flags) => trainBandit(io, flags, LINUCB),
  })
    .option("--alpha <x>", "factor of the confidence width", positive, 1)
    .option("--features <file>", FEATURES_HELP);
  addTrainer(train, io, {
    name: "thompson",
    summary: "Thompson sampling, with Beta or linear-Gaussian posteriors",
    note: STATE_NOTE,
    learn: (flags) => trainBandit(io, flags, THOMPSON),
    example: " --form linear",
  })
    .option("--form <form>", "beta (rewards in 0 … 1) or linear", toForm, "beta")
    .option("--draws <n>", "Monte Carlo draws behind each probability", wholeNumber, 256)
    .option("--floor <p>", "least probability of a selectable candidate", positive, 0.01)
    .option("--features <file>", FEATURES_HELP);
  addTrainer(train, io, {
    name: "bc",
    summary: "behaviour cloning: the policy that made the log",
    learn: (flags) => trainClone(io, flags),
  })
    .option("--l2 <x>", "strength of the penalty", positive, 3e-3)
    .option("--features <file>", FEATURES_HELP);
}

const STATE_NOTE = `
The state in the book grows by the decisions that are new, each counted once; several processes may do so at once. Where
nothing is new and --out holds the same revision, nothing is written. With --no-rival only new rollouts are read.`;
const FEATURES_HELP = "a feature spec as JSON (default: see docs/learn.md)";

function addTrainer(
  train: Command,
  io: Io,
  trainer: {
    name: string;
    summary: string;
    note?: string;
    learn(flags: TrainFlags): Promise<Trained>;
    /** Flags of the example. */
    example?: string;
  },
): Command {
  const { name, summary, note, learn, example = "" } = trainer;
  const command = addCommand(train, name, {
    summary,
    description: `${summary[0]!.toUpperCase()}${summary.slice(1)}. The checkpoint is a function of rows, options and seed. It learns from the train split
and records it, so that evaluate and gate never judge it by rows it knows. From a dataset it is written to --out; from
the book it is sealed there too.${note ?? ""}`,
    examples: [
      `rollbook train ${name} --data routing.jsonl${example} --out policies/${name} --id router-${name}`,
    ],
  })
    .requiredOption("--out <dir>", "the checkpoint's folder; never overwritten")
    .requiredOption("--id <id>", "the id of the new revision")
    .option("--policy <family>", "the family of the new revision", "router")
    .option("--parent <dir|id>", "what it succeeds: a checkpoint, or a revision of the book it learns from")
    .addOption(seedOption("fixes splits and draws", 0n));
  if (note !== undefined)
    command.option("--no-rival", "leave out the static table that the same rows would give");
  command.option(
    "--floor-risk <a>",
    "set the confidence floor on the calibration split, so that departures from the table lose at most this quality in expectation",
    share,
  );
  return addRowOptions(addPromiseOptions(addSplitOptions(command)), { data: true }).action(
    async (flags: TrainFlags) => keepTrained(io, flags, await learn(flags)),
  );
}

async function trainClone(io: Io, flags: TrainFlags): Promise<Trained> {
  const { data, ...facts } = await loadTrainSplit(io, flags);
  const spec = readSpec(flags) ?? { ...DEFAULT_FEATURES, fields: fieldsOf(data.rows) };
  const { model, report } = trainBc(data, { spec, seed: flags.seed, l2: flags.l2 ?? 3e-3 });
  return { ...trainedOn(model, { ...facts, ...data, count: data.rows.length }), report };
}

async function trainBandit(io: Io, flags: TrainFlags, bandit: Bandit): Promise<Trained> {
  if (flags.data === undefined) return trainFromState(io, flags, bandit);
  const { data, ...facts } = await loadTrainSplit(io, flags);
  const spec = bandit.isLinear(flags) ? (readSpec(flags) ?? denseSpec(fieldsOf(data.rows))) : undefined;
  const model = bandit.model(statisticsOf(data.rows, spec), { flags, data: data.digest, spec });
  return trainedOn(model, {
    ...facts,
    ...data,
    count: data.rows.length,
    ...(flags.rival === false ? { rows: [] } : {}),
  });
}

async function trainFromState(io: Io, flags: TrainFlags, bandit: Bandit): Promise<Trained> {
  const fixed = readSpec(flags);
  const derive = async (rows: AsyncIterable<DecisionRow>) => denseSpec(await collectFields(rows));
  const rule = splitRule(flags);
  const { statistics, digest, units, added, spec, rows, heldBack } = await banditOfBook(io, flags, {
    rule,
    readAll: flags.rival !== false,
    ...(bandit.isLinear(flags) ? { specOf: { ...(fixed === undefined ? {} : { fixed }), derive } } : {}),
  });
  const model = bandit.model(statistics, { flags, data: digest, spec });
  const facts = { digest, batches: [], count: statistics.decisions, rule, units: [...units], heldBack };
  return { ...trainedOn(model, { ...facts, rows }), added };
}

interface TrainSplit {
  readonly data: DecisionData;
  readonly rule: SplitRule;
  readonly units: readonly string[];
  readonly heldBack: number;
}

async function loadTrainSplit(io: Io, flags: TrainFlags): Promise<TrainSplit> {
  const rows = await loadRows(io, toDataFlags(flags));
  const rule = splitRule(flags);
  const train = rows.length === 0 ? rows : requirePart(rows, "train", rule);
  const units = train.map((row) => unitOf(row, rule.unit));
  return { data: toTrainingData(train), rule, units, heldBack: rows.length - train.length };
}

/** The model with what a person could have written from `rows`: without outcomes there is no such table. */
function trainedOn(
  model: PolicyModel,
  options: {
    digest: Digest;
    batches: readonly Digest[];
    /** Rows learned from. */
    count: number;
    rows: readonly DecisionRow[];
    rule: SplitRule;
    units: readonly string[];
    heldBack: number;
  },
): Trained {
  const { digest, batches, count, rows, rule, units, heldBack } = options;
  const judged = rows.some((row) => row.reward !== null)
    ? withBaseline(model, fitStaticTable({ rows }))
    : model;
  return { model: judged, data: digest, batches, rows: count, heldBack, rule, units };
}

const UCB1: Bandit = {
  isLinear: () => false,
  model: (statistics, { flags: { exploration = 1 }, data }) => ucb1Model(statistics, { exploration, data }),
};

const LINUCB: Bandit = {
  isLinear: () => true,
  model: (statistics, { flags: { alpha = 1 }, data, spec }) =>
    linUcbModel(statistics, { spec: spec!, alpha, data }),
};

const THOMPSON: Bandit = {
  isLinear: ({ form }) => form === "linear",
  model(statistics, { flags, data, spec }) {
    const { draws = 256, floor = 0.01 } = flags;
    const options = { draws, floor, seed: Number(flags.seed & 0x1fffffffffffffn), data };
    if (spec === undefined) return thompsonBetaModel(statistics, options);
    return thompsonLinearModel(statistics, { ...options, spec });
  },
};

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
