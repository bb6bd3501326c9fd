/** Implements `rollbook slime`: trains a model with slime on rollouts of your agent. */
import type { Command } from "commander";
import { SlimeRunner } from "../../../loop/slime/index.ts";
import { jsonLine, plural } from "../../../view/format.ts";
import { addCommand, addGroup } from "../../command.ts";
import { interruptible } from "../../interrupted.ts";
import type { Io } from "../../io.ts";
import { positiveWhole } from "../../options/numbers.ts";

interface SlimeFlags {
  config: string;
  numRollout: number;
  dryRun?: true;
  prepare?: true;
  json?: true;
}

export function addSlime(program: Command, io: Io): void {
  const group = addGroup(program, "slime", {
    summary: "train a language model with the trainer slime on rollouts of your agent",
    examples: ["rollbook slime train --config slime.yaml --num-rollout 100"],
  });
  addCommand(group, "train", {
    book: false,
    summary: "write the folder of a training run and start slime in it",
    description: `Write the folder of a training run and start slime in it. The folder holds checked rows, slime's
flags, the hook through which slime asks Rollbook for rollouts, and a script that starts the same run by hand. Words
after -- go to slime's train.py as they are. docs/reference/settings.md has every setting.`,
    examples: [
      "rollbook slime train --config slime.yaml --num-rollout 100",
      "rollbook slime train --config slime.yaml --dry-run -- --num-epoch 3",
    ],
  })
    .argument("[flags...]", "further flags of slime, after --")
    .requiredOption("--config <file>", "the settings in YAML")
    .option(
      "--num-rollout <n>",
      "number of training steps; each step collects one batch of rollouts and makes one update",
      positiveWhole,
      1,
    )
    .option("--dry-run", "print the command and write nothing")
    .option("--prepare", "write the folder and do not start slime")
    .action((extra: string[], flags: SlimeFlags) => train(io, extra, flags));
}

async function train(io: Io, extra: readonly string[], flags: SlimeFlags): Promise<void> {
  const { config, numRollout, json } = flags;
  const runner = SlimeRunner.fromYaml(config, { extraFlags: extra });
  if (flags.dryRun) {
    const command = runner.command({ numRollout });
    io.out(json ? jsonLine({ command, settings: runner.settings }) : `${command}\n`);
    return;
  }
  const tell = ({
    path,
    script,
    rows,
    warnings,
    flags: words,
  }: Awaited<ReturnType<typeof runner.prepare>>) => {
    for (const warning of warnings) io.err(`warning: ${warning}\n`);
    io.out(json ? jsonLine({ path, script, rows, flags: words }) : `${script}: ${plural(rows, "row")}\n`);
  };
  if (flags.prepare) tell(await runner.prepare({ numRollout }));
  else
    await interruptible(async (signal) => void (await runner.train({ numRollout, signal, onFolder: tell })));
}
