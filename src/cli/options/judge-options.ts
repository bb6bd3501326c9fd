/** The flags that `train --floor-risk`, `evaluate` and `gate` share, and how their values are read. */
import { type Command, InvalidArgumentError, Option } from "commander";
import type { Range } from "../../judge/ope/index.ts";
import { parseRouterConfig, settingsToJudge } from "../../serve/index.ts";
import { readText } from "../../store/index.ts";
import { seedOption } from "../command.ts";
import type { Io } from "../io.ts";
import { share } from "./numbers.ts";
import type { RowFlags } from "./row-options.ts";

/** For the description of a command that takes --table. */
export const TABLE_EXAMPLE = `A static table for --table is a YAML file, in which the first rule that holds decides:
  schema: rollbook.static-table.v1
  rules: [{ when: { promptChars: { min: 2000 } }, choose: large }]
  default: [small, large]`;

export const JUDGE_DISCOUNT =
  "for rollouts with several decisions: weight of a reward that comes one decision later, 0 … 1. A rollout is judged by the weighted sum of its rewards; with 0 each decision is judged by its own reward (default: as in training, else 1)";

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

/** What is promised before the data. `reliedOnBy` names the bounds that need the least propensity, where there are any. */
export function addPromiseOptions(command: Command, reliedOnBy?: string): Command {
  command.option(
    "--table <file>",
    "the static table (fixed rules, in YAML) that decides below the confidence floor (default: the one fitted in training)",
  );
  if (reliedOnBy !== undefined)
    command.option(
      "--propensity-floor <p>",
      `lowest probability with which the log chose any candidate, 0 … 1; ${reliedOnBy}`,
      share,
      0.05,
    );
  return command.addOption(
    new Option(
      "--quality-range <low..high>",
      "lowest and highest possible quality, which is the reward without its cost and latency terms (default: 0..1 where a bound needs a range, else the observed one)",
    ).argParser(toRange),
  );
}

export function addJudgeOptions(command: Command, reliedOnBy?: string): Command {
  return addPromiseOptions(command, reliedOnBy)
    .option(
      "--floor <c>",
      "confidence of the policy (how sure it is of its best candidate, 0 … 1) below which the static table decides (default: the checkpoint's, else 0)",
      share,
    )
    .option(
      "--exploration <e>",
      "share of choices that the router makes at random among all candidates, 0 … 1. The policy is judged without exploration unless you state it. A served router explores 0.02 by default; use --router FILE to judge it as served",
      share,
      0,
    )
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
    : settingsToJudge(
        parseRouterConfig(
          readText(router, "the configuration of a router", { code: "no-config" }),
          router,
          env,
        ),
      );
}

export function toRange(text: string): Range {
  const [low, high, ...rest] = text
    .split("..")
    .map((part) => (part.trim() === "" ? Number.NaN : Number(part)));
  if (rest.length > 0 || !(low! < high!) || !Number.isFinite(high! - low!))
    throw new InvalidArgumentError("It must be two numbers, the lower one first, such as 0..1 or -2..2.");
  return { low: low!, high: high! };
}
