/** Defines the flags of trainings whose policy is a network. */
import { type Command, InvalidArgumentError, Option } from "commander";
import { given } from "../../base/index.ts";
import type { NetworkConfig } from "../../learn/index.ts";
import { nonNegative, positiveWhole, share, wholeNumber } from "./numbers.ts";

export type NetworkFlags = Omit<NetworkConfig, "spec">;

export function addNetworkOptions(
  command: Command,
  defaults: { steps: number; patience: number; rate: number },
): Command {
  return command
    .addOption(
      new Option("--hidden <widths>", "widths of the hidden layers, separated by commas")
        .argParser(toWidths)
        .default([256, 256], "256,256"),
    )
    .option("--steps <n>", "gradient steps", positiveWhole, defaults.steps)
    .option("--batch <n>", "rows of a minibatch", positiveWhole, 64)
    .option(
      "--rate <x>",
      `learning rate of AdamW, the step size of the weights (default: ${defaults.rate})`,
      nonNegative,
    )
    .option("--decay <x>", "weight decay of AdamW; a step subtracts rate * this * the weight", nonNegative, 0)
    .option("--holdout <share>", "share of the training tasks held out for the learning curve", share, 0.1)
    .option("--every <n>", "steps between two points of the learning curve", positiveWhole, 250)
    .option(
      "--patience <n>",
      "points without a better held-out loss before it stops; 0 never stops early",
      wholeNumber,
      defaults.patience,
    )
    .option("--members <n>", "networks that are trained independently and averaged", positiveWhole, 1);
}

export function networkConfig(flags: NetworkFlags) {
  const { hidden, steps, batch, rate, decay, holdout, every, patience, members } = flags;
  return given({ hidden, steps, batch, rate, decay, holdout, every, patience, members });
}

function toWidths(text: string): number[] {
  const widths = text.split(",").map(Number);
  if (widths.every((width) => Number.isSafeInteger(width) && width > 0 && width <= 4096)) return widths;
  throw new InvalidArgumentError("It must be widths from 1 to 4096, such as 256,256.");
}
