/** The flags that `train --floor-risk`, `evaluate` and `gate` share, and how their values are read. */
import { type Command, InvalidArgumentError, Option } from "commander";
import type { Range } from "../../judge/ope/index.ts";
import { parseRouterConfig, settingsToJudge } from "../../serve/index.ts";
import { seedOption } from "../command.ts";
import type { Io } from "../io.ts";
import { share } from "./numbers.ts";
import { readConfig } from "./read-config.ts";
import type { RowFlags } from "./row-options.ts";

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
    .option("--propensity-floor <p>", "least probability a logged choice could have", share, 0.05)
    .addOption(
      new Option(
        "--quality-range <low..high>",
        "where quality lies (default: 0..1 for floors and bounds that need a range, else as observed)",
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
    .option("--exploration <e>", "share of choices spread evenly, as the router will", share, 0)
    .option(
      "--router <file>",
      "judge as this router configuration serves: its table, floor, exploration and constraints",
    )
    .option("--features <file>", "refuse a checkpoint that was trained on another feature spec")
    .option(
      "--embeddings <url>",
      "the endpoint of a checkpoint that reads embeddings (default: the cache of the book alone)",
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
