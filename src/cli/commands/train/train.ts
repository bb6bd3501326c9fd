/** Implements `rollbook train`: from decisions to a checkpoint and its revision. */
import { type Command, InvalidArgumentError, Option } from "commander";
import { given } from "../../../base/index.ts";
import { wrongUsage } from "../../../book/decisions/index.ts";
import { type Learner, readSpec, readValueSpec, trainPolicy } from "../../../book/train/index.ts";
import type { CscType } from "../../../learn/index.ts";
import { jsonLine } from "../../../view/format.ts";
import { renderAdmitted } from "../../../view/ledger-view.ts";
import { renderCurvePoint, renderTrained, trainedJson } from "../../../view/train-view.ts";
import { addCommand, addGroup, seedOption } from "../../command.ts";
import type { Io } from "../../io.ts";
import { embeddingPlace } from "../../options/embedding-options.ts";
import { addPromiseOptions, addTableOption, type PromiseFlags } from "../../options/judge-options.ts";
import { addNetworkOptions, type NetworkFlags, networkConfig } from "../../options/network-options.ts";
import { nonNegative, positiveWhole, share, wholeNumber } from "../../options/numbers.ts";
import { addRowOptions, type RowFlags, requestOf, withDecisions } from "../../options/row-options.ts";
import { addSplitOptions, type SplitFlags, splitRule } from "../../options/split-options.ts";
import { addPpo } from "./train-ppo.ts";
import { addTrainWeights } from "./train-weights.ts";

interface TrainFlags extends RowFlags, SplitFlags, PromiseFlags, NetworkFlags {
  out: string;
  id: string;
  policy?: string;
  parent?: string;
  features?: string;
  seed: bigint;
  l2?: number;
  neighbours?: number;
  type?: CscType;
  rate?: number;
  costWeight?: number;
  meanCost?: number;
  embeddings?: string;
  embeddingModel?: string;
  alpha?: number;
  exploration?: number;
  form?: "beta" | "linear";
  draws?: number;
  floor?: number;
  baseline?: boolean;
  floorRisk?: number;
  discount?: number;
  conservatism?: number;
  targetEvery?: number;
  goal?: "bootstrap" | "return";
  wide?: boolean;
}

export function addTrain(program: Command, io: Io): void {
  const train = addGroup(program, "train", {
    summary: "train a policy from logged decisions; writes a checkpoint and its revision record",
    examples: ["rollbook train auto --data routing.jsonl --out policies/auto --id router-auto"],
  });
  for (const { name, summary } of VALUE_TRAINERS) addValueTrainer(train, io, name, summary);
  addTrainer(train, io, {
    name: "csc",
    summary: "cost-sensitive classification in one pass, with progressive validation",
    learner: ({ type, rate, ...flags }) => ({ kind: "csc", type, rate, spec: readValueSpec(flags) }),
  })
    .addOption(
      new Option(
        "--type <type>",
        "target of each candidate's regression, with r the reward, p the propensity and q the predicted reward: ips is r/p, dm is r, dr is q + (r - q)/p",
      )
        .choices(["ips", "dm", "dr"])
        .default("dr"),
    )
    .option(
      "--rate <x>",
      "step size of the updates; larger learns faster and less steadily",
      nonNegative,
      0.5,
    )
    .option("--features <file>", FEATURES_HELP);
  addTrainer(train, io, {
    name: "ucb",
    summary: "UCB1: the best candidate, the same for every prompt",
    note: STATE_NOTE,
    learner: ({ exploration = 0 }) => ({ kind: "ucb", exploration }),
  }).option("--exploration <x>", BONUS_HELP, nonNegative, 0);
  addTrainer(train, io, {
    name: "linucb",
    summary: "LinUCB: one linear model per candidate",
    note: STATE_NOTE,
    learner: ({ alpha = 0, ...flags }) => ({ kind: "linucb", alpha, spec: readSpec(flags) }),
  })
    .option("--alpha <x>", BONUS_HELP, nonNegative, 0)
    .option("--features <file>", FEATURES_HELP);
  addTrainer(train, io, {
    name: "thompson",
    summary: "Thompson sampling, with Beta or linear-Gaussian posteriors",
    note: STATE_NOTE,
    learner: ({ form = "beta", draws = 256, floor = 0.01, ...flags }) => ({
      ...{ kind: "thompson", form, draws, floor, spec: readSpec(flags) },
    }),
    example: " --form linear",
  })
    .option(
      "--form <form>",
      "posterior: beta, for rewards in 0 … 1, or linear, for any rewards",
      toForm,
      "beta",
    )
    .option("--draws <n>", "Monte Carlo draws behind each probability", wholeNumber, 256)
    .option("--floor <p>", "least probability of a selectable candidate", nonNegative, 0.01)
    .option("--features <file>", FEATURES_HELP);
  addTrainer(train, io, {
    name: "bc",
    summary: "behaviour cloning: the policy that made the log",
    learner: ({ l2 = 3e-3, ...flags }) => ({ kind: "bc", l2, spec: readSpec(flags) }),
  })
    .option("--l2 <x>", "strength of the L2 penalty on the weights", nonNegative, 3e-3)
    .option("--features <file>", FEATURES_HELP);
  const clone = addTrainer(train, io, {
    name: "neural-bc",
    summary: "behaviour cloning with a network",
    example: " --steps 1000",
    note: RESUME_NOTE,
    learner: (flags) => ({ kind: "neural-bc", ...networkConfig(flags), spec: readSpec(flags) }),
  });
  addNetworkOptions(clone, { steps: 6000, patience: 6, rate: 0.001 }).option(
    "--features <file>",
    FEATURES_HELP,
  );
  const cql = addTrainer(train, io, {
    name: "cql",
    summary: "discrete conservative Q-learning: a network that values every candidate",
    example: " --steps 1000",
    note: RESUME_NOTE,
    discountHelp:
      "discount per decision, 0 … 1, for rollouts with several decisions. With 0, a decision learns from its own reward. Above 0, it learns from the target that --goal selects. If --discount is not given, it learns from the plain sum of its own and all later rewards, without --goal",
    learner: ({ discount = 0, conservatism = 1, targetEvery = 500, goal, wide, ...flags }) => {
      if (goal !== undefined && discount === 0)
        throw wrongUsage("--goal has no effect without a --discount above 0. Add one, or remove --goal");
      return {
        ...{ kind: "cql", ...networkConfig(flags), spec: readSpec(flags), discount, conservatism },
        ...{ targetEvery, ...(goal === "return" ? { goal } : {}), ...(wide === true ? { wide } : {}) },
      };
    },
  });
  addNetworkOptions(cql, { steps: 6000, patience: 0, rate: 0.0003 })
    .option(
      "--conservatism <a>",
      "weight of the conservative term; 0 is plain double Q-learning",
      nonNegative,
      1,
    )
    .option("--target-every <n>", "steps between two copies into the target network", positiveWhole, 500)
    .addOption(
      new Option(
        "--goal <which>",
        "training target of a decision; only with --discount above 0. bootstrap, the default: its reward plus the discounted best value of the next state. return: the discounted sum of its own and all later rewards, which leaves out truncated rollouts",
      ).choices(["bootstrap", "return"]),
    )
    .option(
      "--wide",
      "fit a linear model of all words first, which the network corrects: for routing by text",
    )
    .option("--features <file>", FEATURES_HELP);
  addPpo(train, io);
  addTrainWeights(train, io);
}

const VALUE_TRAINERS = [
  {
    name: "auto",
    summary: "predict the reward of every candidate; cross-validation chooses the learner and its settings",
  },
  { name: "ridge", summary: "predict the reward of every candidate by sparse ridge regression" },
  { name: "logistic", summary: "predict the reward of every candidate by sparse logistic regression" },
  { name: "knn", summary: "predict the reward of every candidate by the nearest questions" },
] as const;

/** Adds a learner that predicts rewards, from the outcomes of the chosen candidate or of all candidates. */
function addValueTrainer(
  train: Command,
  io: Io,
  name: (typeof VALUE_TRAINERS)[number]["name"],
  summary: string,
): void {
  const command = addTrainer(train, io, {
    name,
    summary,
    learner: ({ l2, neighbours, costWeight, meanCost, ...flags }) => {
      if (costWeight !== undefined && meanCost !== undefined)
        throw wrongUsage("--mean-cost sets the cost weight. Remove it, or remove --cost-weight");
      return { ...{ kind: name, l2, k: neighbours, costWeight, meanCost, spec: readValueSpec(flags) } };
    },
  });
  if (name === "ridge" || name === "logistic")
    command.option(
      "--l2 <x>",
      "strength of the L2 penalty on the weights (default: by cross-validation)",
      nonNegative,
    );
  if (name === "knn")
    command.option(
      "--neighbours <n>",
      "questions to average over (default: by cross-validation)",
      positiveWhole,
    );
  command
    .option(
      "--cost-weight <x>",
      "maximise quality minus this times the cost of a decision, in units of the logged cost (US dollars if a gateway recorded the calls) (default: maximise the logged reward)",
      nonNegative,
    )
    .option(
      "--mean-cost <x>",
      "maximise quality at this mean cost of a decision, in units of the logged cost; this sets the cost weight (default: no limit)",
      nonNegative,
    )
    .option(
      "--embeddings <url>",
      "also read embeddings of the prompts, from an endpoint of the OpenAI /v1/embeddings shape; key in $ROLLBOOK_EMBEDDINGS_KEY (default: no embeddings)",
    )
    .option("--embedding-model <name>", "the model that the endpoint embeds with; required with --embeddings")
    .option("--features <file>", FEATURES_HELP);
}

const STATE_NOTE = `
In a book the learner
continues from its stored state: each decision counts once, new decisions are sealed as one batch, and several processes may
train at the same time. If nothing is new and --out holds the same revision, nothing is written.`;
const BONUS_HELP =
  "factor of the exploration bonus, which raises the estimate of candidates that were rarely tried; 0 takes the best estimate. Also used when the policy is judged and served";
const RESUME_NOTE = `
It writes its state to OUT.training after every point of the learning curve. After a kill, the same command continues the training and ends with the same weights.`;
const DISCOUNT_HELP =
  "discount per decision, 0 … 1, for rollouts with several decisions. A decision learns from the discounted sum of its own and all later rewards; with 0 from its own reward (default: 1)";
const FEATURES_HELP =
  "a feature spec as JSON, described in docs/reference/learn.md (default: the words of the prompt and measures such as its length)";

function addTrainer(
  train: Command,
  io: Io,
  trainer: {
    name: string;
    summary: string;
    note?: string;
    learner(flags: TrainFlags): Learner;
    /** Flags of the help example. */
    example?: string;
    discountHelp?: string;
  },
): Command {
  const { name, summary, note, learner, example = "", discountHelp = DISCOUNT_HELP } = trainer;
  const command = addCommand(train, name, {
    summary,
    description: `${summary[0]!.toUpperCase()}${summary.slice(1)}. The same rows, options and seed give the same checkpoint.
Training uses the train split and records it, so that evaluate and gate judge only by other rows. Without --data and
--replay it trains on the admitted decisions of the book: those decisions become a sealed batch that the revision
names, and the checkpoint is sealed in the book too. Rollouts that were rejected, quarantined or cancelled, or failed by
task, provider, sandbox or infrastructure, are left out; a failure of the agent counts if it has a reward. A dataset file
or a replay store is recorded by its digest.${note ?? ""}`,
    examples: [
      `rollbook train ${name} --data routing.jsonl${example} --out policies/${name} --id router-${name}`,
    ],
  })
    .requiredOption("--out <dir>", "the checkpoint's folder; never overwritten")
    .requiredOption("--id <id>", "the id of the new revision")
    .option(
      "--policy <family>",
      "the family of the new revision, not a filter (default: that of the parent, else router, which a gateway serves)",
    )
    .option(
      "--parent <dir|id>",
      "the previous revision, which the new one follows: a checkpoint's folder, or a revision of the book (if two families have a revision with this id, --policy selects the family). Its family is the default of --policy; its weights are not read (default: none)",
    )
    .addOption(seedOption("seed of draws and hold-outs", 0n))
    .optionsGroup("Split and confidence floor:");
  addSplitOptions(command);
  if (note === STATE_NOTE)
    command.option(
      "--no-baseline",
      "do not fit a static table (fixed rules, the baseline of evaluate and gate) on the same rows",
    );
  command.option(
    "--floor-risk <a>",
    "choose the lowest confidence floor at which the mean loss of a decision on the calibration split is at most this, 0 … 1. The loss of a decision is 0 where the policy agrees with the static table. Elsewhere it is how far the quality of the policy's choice is below the upper end of --quality-range, as a share of the whole range. It is not compared with the table's choice (docs/reference/judge.md; default: no floor)",
    share,
  );
  addPromiseOptions(addTableOption(command), {
    propensityFloor: "Used by --floor-risk only",
    defaultRange: "0..1",
  });
  return addRowOptions(command, { data: true })
    .optionsGroup("Learner:")
    .option("--discount <g>", discountHelp, share)
    .action((flags: TrainFlags) => run(io, flags, learner(flags)));
}

async function run(io: Io, flags: TrainFlags, learner: Learner): Promise<void> {
  const { id, policy, parent, seed, out, floorRisk, baseline = true, discount } = flags;
  const { table, propensityFloor, qualityRange } = flags;
  if (table !== undefined && floorRisk === undefined)
    throw wrongUsage(
      "--table has no effect without --floor-risk. Add --floor-risk, or give --table to `gate`",
    );
  const trained = await withDecisions(io, { ...flags, mode: "write" }, (source) =>
    trainPolicy(source, {
      ...requestOf(flags),
      ...{ learner, id, policy, parent, seed, out, floorRisk, baseline, discount, clock: io.clock },
      split: splitRule(flags),
      promise: { table, propensityFloor, ...given({ qualityRange }) },
      embeddings: embeddingsOf(io, flags),
      ...(io.live ? { progress: (point) => io.err(renderCurvePoint(point)) } : {}),
    }),
  );
  const facts = { ...trained, out, id };
  if (trained.admitted !== undefined && !flags.json) io.err(renderAdmitted(trained.admitted));
  for (const warning of trained.warnings) io.err(`warning: ${warning}\n`);
  io.out(flags.json ? jsonLine(trainedJson(facts)) : renderTrained(facts));
}

function embeddingsOf(io: Io, flags: TrainFlags) {
  const { embeddings: url, embeddingModel: model } = flags;
  if (url === undefined && model === undefined) return undefined;
  if (model === undefined)
    throw wrongUsage("--embeddings needs --embedding-model, the model that the endpoint embeds with");
  return { ...embeddingPlace(io, flags), model };
}

function toForm(text: string): "beta" | "linear" {
  if (text === "beta" || text === "linear") return text;
  throw new InvalidArgumentError("It must be beta or linear.");
}
