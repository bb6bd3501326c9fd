/** Defines the flags that `train --floor-risk`, `evaluate` and `gate` share, and parses their values. */
import { type Command, InvalidArgumentError, Option } from "commander";
import { readRouterFile } from "../../book/serve/index.ts";
import type { Range } from "../../judge/ope/index.ts";
import { DEFAULT_EXPLORATION, settingsToJudge } from "../../serve/index.ts";
import { readText } from "../../store/index.ts";
import { seedOption } from "../command.ts";
import type { Io } from "../io.ts";
import { share } from "./numbers.ts";
import type { RowFlags } from "./row-options.ts";

/** Text for the description of a command that takes --table, with the names of two candidates. */
export function tableExample(large = "large", small = "small"): string {
  return `A static table for --table is a YAML file, in which the first rule that holds decides:
  schema: rollbook.static-table.v1
  rules: [{ when: { promptChars: { min: 2000 } }, choose: ${large} }]
  default: [${small}, ${large}]`;
}

export const JUDGE_DISCOUNT =
  "discount per decision, 0 … 1, for rollouts with several decisions. A rollout is judged by the discounted sum of its rewards; with 0 each decision is judged by its own reward (default: as in training, else 1)";

interface RangeFlags {
  table?: string;
  qualityRange?: Range;
}

export interface PromiseFlags extends RangeFlags {
  propensityFloor: number;
}

export interface JudgeFlags extends RowFlags, RangeFlags {
  floor?: number;
  exploration: number;
  features?: string;
  router?: string;
  embeddings?: string;
  seed: bigint;
}

/** Uses of the terms in a command, as the end of their help. */
interface TermUses {
  /** A sentence that names the bounds that need the lowest propensity, if any. */
  readonly propensityFloor?: string;
  /** Which range applies if none is given. */
  readonly defaultRange: string;
  /** The range that the option means with another option, if any. */
  readonly otherRange?: string;
}

/** Options for terms that are fixed before the data is seen. */
export function addPromiseOptions(
  command: Command,
  { propensityFloor: usedBy, defaultRange, otherRange = "" }: TermUses,
): Command {
  if (usedBy !== undefined)
    command.option(
      "--propensity-floor <p>",
      `smallest propensity that the log may hold, 0 … 1; a smaller one ends the command with an error. ${usedBy}`,
      share,
      0.05,
    );
  return command.addOption(
    new Option(
      "--quality-range <low..high>",
      `lowest and highest possible quality, which is the reward without its cost and latency terms${otherRange} (default: ${defaultRange})`,
    ).argParser(toRange),
  );
}

export function addJudgeOptions(command: Command, uses: TermUses): Command {
  return addTableOption(addPromiseOptions(command, uses).optionsGroup("Router around the policy:"))
    .option(
      "--floor <c>",
      "confidence of the policy, 0 … 1, below which the static table decides. Each learner has its own scale (docs/glossary.md); `train --floor-risk` chooses a floor (default: the checkpoint's, else 0)",
      share,
    )
    .option(
      "--exploration <e>",
      "share of choices that the router makes at random among all candidates, 0 … 1",
      share,
      0,
    )
    .addOption(
      new Option(
        "--router <file>",
        "judge the policy with this router configuration: its table, floor, exploration and constraints. If FILE sets no exploration, 0.02 is judged, and a gateway that serves the released policy uses the judged one",
      ).conflicts(["table", "floor", "exploration"]),
    )
    .option(
      "--features <file>",
      "a feature spec as JSON: refuse a checkpoint that was trained on another one (default: any)",
    )
    .option(
      "--embeddings <url>",
      "embeddings endpoint, for a checkpoint that uses embeddings (default: only the cache of the book)",
    )
    .addOption(seedOption("fixes folds and resampling", 0n).helpGroup("Options:"));
}

export function addTableOption(command: Command): Command {
  return command.option(
    "--table <file>",
    "the static table (fixed rules, in YAML) that decides below the confidence floor (default: the one fitted in training)",
  );
}

/** Router around the judged policies: from its configuration if one is named, else from the flags. */
export async function judgedRouter(io: Io, flags: JudgeFlags) {
  const { router, floor, exploration, table } = flags;
  if (router === undefined) return { floor, exploration, table };
  const { config, candidates } = await readRouter(io, router);
  const offered = candidates?.map(({ id }) => id) ?? Object.keys(config.candidates);
  return { ...settingsToJudge(config, offered), offered };
}

/** Tells that a gateway may explore otherwise than judged; undefined if the configuration fixes the exploration. */
export async function explorationNote(io: Io, { router }: JudgeFlags): Promise<string | undefined> {
  if (router === undefined) return undefined;
  const { config } = await readRouter(io, router);
  if (config.exploration !== undefined) return undefined;
  return `${router} sets no exploration, so the policy is judged with ${DEFAULT_EXPLORATION}. A gateway serves a released policy with the exploration of its gate verdict. To fix it, set router.exploration`;
}

function readRouter({ env }: Io, file: string) {
  return readRouterFile(readText(file, "the configuration of a router", { code: "no-config" }), file, env);
}

export function toRange(text: string): Range {
  const [low, high, ...rest] = text
    .split("..")
    .map((part) => (part.trim() === "" ? Number.NaN : Number(part)));
  if (rest.length > 0 || !(low! < high!) || !Number.isFinite(high! - low!))
    throw new InvalidArgumentError("It must be two numbers, the lower one first, such as 0..1 or -2..2.");
  return { low: low!, high: high! };
}
