/** The flags that `train --floor-risk`, `evaluate` and `gate` share, and how their values are read. */
import { type Command, InvalidArgumentError, Option } from "commander";
import type { Range } from "../../judge/ope/index.ts";
import { parseRouterConfig, settingsToJudge } from "../../serve/index.ts";
import { seedOption } from "../command.ts";
import type { Io } from "../io.ts";
import { share } from "./numbers.ts";
import { readConfig } from "./read-config.ts";
import type { RowFlags } from "./row-options.ts";

export const JUDGE_DISCOUNT =
  "rollouts with several decisions: judge their returns, with a reward one decision later worth g, 0 … 1; 0 judges each decision by its own reward (default: as the policy learned, else 1)";

export interface PromiseFlags {
  table?: string;
  propensityFloor: number;
  qualityRange?: Range;
}

export interface JudgeFlags extends RowFlags, PromiseFlags {
  floor?: number;
  exploration: number;
  features?: string;
  router?: string;
  embeddings?: string;
  seed: bigint;
}

/** What is promised before the data, for the bounds that need it. */
export function addPromiseOptions(command: Command): Command {
  return command
    .option("--table <file>", "the static table to fall back to (default: the one fitted in training)")
    .option(
      "--propensity-floor <p>",
      "lowest probability that the logging policy gives a choice",
      share,
      0.05,
    )
    .addOption(
      new Option(
        "--quality-range <low..high>",
        "range of quality (default: 0..1 where a floor or a bound needs a range, else as observed)",
      ).argParser(toRange),
    );
}

export function addJudgeOptions(command: Command): Command {
  return addPromiseOptions(command)
    .option(
      "--floor <c>",
      "confidence below which the table decides (default: the checkpoint's, else 0)",
      share,
    )
    .option("--exploration <e>", "share of uniformly random choices, as in the router", share, 0)
    .option(
      "--router <file>",
      "judge the policy with this router configuration: its table, floor, exploration and constraints",
    )
    .option("--features <file>", "refuse a checkpoint that was trained on another feature spec")
    .option(
      "--embeddings <url>",
      "embeddings endpoint, for a checkpoint that uses embeddings (default: only the cache of the book)",
    )
    .addOption(seedOption("fixes folds and resampling", 0n));
}

/** The router around the policies that are judged: of its configuration, where one is named, else of the flags. */
export function judgedRouter({ env }: Io, flags: JudgeFlags) {
  const { router, floor, exploration, table } = flags;
  return router === undefined
    ? { floor, exploration, table }
    : settingsToJudge(parseRouterConfig(readConfig(router), router, env));
}

export function toRange(text: string): Range {
  const [low, high, ...rest] = text
    .split("..")
    .map((part) => (part.trim() === "" ? Number.NaN : Number(part)));
  if (rest.length > 0 || !(low! < high!) || !Number.isFinite(high! - low!))
    throw new InvalidArgumentError("It must be two numbers such as 0..1 or -2..2.");
  return { low: low!, high: high! };
}
