/** `rollbook launch`: runs an agent on every task, several times, and seals what happened. */
import { type Command, InvalidArgumentError, Option } from "commander";
import { isObject, type Json, parseJson, RollbookError } from "../../base/index.ts";
import { followLaunch, launch } from "../../book/collect/index.ts";
import type { Progress, RolloutResult, RowForm } from "../../collect/rollout/index.ts";
import { jsonLine, plural } from "../../view/format.ts";
import { renderCommonFailure, renderSummary } from "../../view/launch-view.ts";
import { addCommand, seedOption } from "../command.ts";
import { interruptible } from "../interrupted.ts";
import type { Io } from "../io.ts";
import { amount, positiveAmount, positiveWhole } from "../options/numbers.ts";
import { addRunOptions, progressLine, type RunFlags, workRequest } from "../options/run-options.ts";
import type { BookFlags } from "../with-book.ts";

interface LaunchFlags extends BookFlags, RunFlags {
  tasks: string;
  samples: number;
  exp: string;
  model?: string;
  baseUrl?: string;
  sampling?: Record<string, Json>;
  config?: Record<string, Json>;
  environment: string;
  synthetic?: true;
  rows: RowForm;
  seed: bigint;
  timeLimit?: number;
  maxTurns?: number;
  budgetUsd?: number;
  deadline?: number;
}

export function addLaunch(program: Command, io: Io): void {
  const command = addCommand(program, "launch", {
    summary: "run an agent on every task, several times, and seal what happened",
    description: `Run an agent on every task, several times, and seal what happened. The same command again, after a crash or an
interruption, runs only what is missing. Tasks are JSON Lines: {"prompt": …, "label": …, "metadata": {…}}, where metadata
is the agent's payload, or any other object, which is the payload itself.`,
    examples: [
      "rollbook launch --book runs --tasks tasks.jsonl --agent agent.mjs --samples 8 --concurrency 64",
      "rollbook launch --book runs --tasks tasks.jsonl --agent agent.mjs --time-limit 60 --json",
    ],
  })
    .requiredOption("--tasks <file>", "the tasks, one JSON object a line; - reads stdin")
    .option("--samples <n>", "rollouts per task", positiveWhole, 1)
    .option("--exp <id>", "the experiment: another name, other rollouts", "default")
    .option("--model <id>", "rollout_config.model_id")
    .option("--base-url <url>", "rollout_config.base_url, where there is no gateway")
    .option("--sampling <json>", "rollout_config.sampling_params", jsonObject)
    .option("--config <json>", "further fields of rollout_config", jsonObject)
    .option("--environment <ref@version>", "where the tasks take place", "local@1")
    .option("--synthetic", "mark the rollouts as synthetic data")
    .addOption(
      new Option("--rows <form>", "the form of the rows").choices(["auto", "slime", "plain"]).default("auto"),
    )
    .addOption(seedOption("fixes the seeds of all rollouts", 0n))
    .option("--time-limit <s>", "seconds for one rollout, then it is truncated", positiveAmount)
    .option("--max-turns <n>", "turns of one rollout, then it is truncated", positiveWhole)
    .option("--budget-usd <usd>", "dollars for one rollout, enforced by the gateway", amount)
    .option(
      "--deadline <s>",
      "seconds for everything, then what is left stays for the next time",
      positiveAmount,
    );
  addRunOptions(command, { queueDefault: "queue.db in the book" }).action((flags: LaunchFlags) =>
    runLaunch(io, flags),
  );
}

async function runLaunch(io: Io, flags: LaunchFlags): Promise<void> {
  const tasks = flags.tasks === "-" ? { name: "stdin", stream: io.stdin } : flags.tasks;
  await interruptible(async (signal) => {
    const { log, end, ...followers } = progressLine(io);
    const launched = launch(tasks, { ...workRequest(io, flags), ...settingsOf(flags), signal, log });
    const onResult = (result: RolloutResult) => io.out(jsonLine({ kind: "rollout", ...result }));
    const progress = await followLaunch(launched, {
      ...followers,
      ...(flags.json ? { onResult } : {}),
    }).finally(end);
    finish(io, progress, flags, signal.aborted);
  });
}

function settingsOf(flags: LaunchFlags) {
  const { samples, exp, model, baseUrl, sampling, config, seed, rows, timeLimit, maxTurns, budgetUsd } =
    flags;
  return {
    ...{ samples, exp, seed, rows, environment: flags.environment },
    extra: { ...config, ...(sampling === undefined ? {} : { sampling_params: sampling }) },
    dataSource: flags.synthetic ? ("synthetic" as const) : ("real" as const),
    ...(model === undefined ? {} : { modelId: model }),
    ...(baseUrl === undefined ? {} : { baseUrl }),
    limits: {
      ...(timeLimit === undefined ? {} : { timeMs: timeLimit * 1000 }),
      ...(maxTurns === undefined ? {} : { maxTurns }),
      ...(budgetUsd === undefined ? {} : { budgetUsd }),
    },
    ...(flags.deadline === undefined ? {} : { deadlineMs: flags.deadline * 1000 }),
  };
}

function finish(io: Io, progress: Progress, flags: LaunchFlags, interrupted: boolean): void {
  if (flags.json) io.out(jsonLine({ kind: "summary", ...progress }));
  else io.out(renderSummary(progress));
  const reason = renderCommonFailure(progress);
  if (reason !== undefined) io.err(`${reason}\n`);
  const { total, done, dead } = progress;
  const left = total - done;
  if (left === 0) {
    refuseNothing(progress, flags);
    return;
  }
  const why = interrupted
    ? "interrupted"
    : dead > 0
      ? `${plural(dead, "rollout")} set aside`
      : "the deadline passed";
  throw new RollbookError(
    "launch-incomplete",
    { total, done, dead },
    `${left} of ${plural(total, "rollout")} not done: ${why}. Give the same command again to run what is missing.`,
  );
}

/** Complete, but with nothing to show for it: scripts that go on by the exit code must not. */
function refuseNothing({ total, failed }: Progress, { tasks }: LaunchFlags): void {
  if (total === 0)
    throw new RollbookError("no-tasks", { tasks }, `${tasks} holds no task. Write one JSON object a line.`);
  const failures = Object.values(failed).reduce((sum, count) => sum + count, 0);
  if (failures === total)
    throw new RollbookError(
      "all-failed",
      { total, failed },
      `all ${plural(total, "rollout")} failed. They are sealed; correct the cause and launch under another --exp.`,
    );
}

function jsonObject(text: string): Record<string, Json> {
  let value: Json;
  try {
    value = parseJson(text, "value");
  } catch {
    throw new InvalidArgumentError("It must be a JSON object.");
  }
  if (!isObject(value)) throw new InvalidArgumentError("It must be a JSON object.");
  return value as Record<string, Json>;
}
