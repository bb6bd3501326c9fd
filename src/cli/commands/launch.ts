/** Implements `rollbook launch`: runs an agent on every task, several times, and seals the rollouts. */
import { type Command, InvalidArgumentError, Option } from "commander";
import { given, isObject, type Json, parseJson, RollbookError } from "../../base/index.ts";
import {
  compareLaunches,
  experimentOutcomes,
  followLaunch,
  type LaunchOutcome,
  type LaunchReport,
  launch,
  outcomeOf,
  PASS_REWARD,
  reportLaunch,
} from "../../book/collect/index.ts";
import { wrongUsage } from "../../book/decisions/index.ts";
import { requireExperiment } from "../../book/rollouts/index.ts";
import type {
  Progress,
  ResultPolicy,
  RolloutResult,
  RowForm,
  SealedResult,
} from "../../collect/rollout/index.ts";
import { environmentKey, type FailureOwner, failureOwner, outsideBaseline } from "../../contract/index.ts";
import { jsonLine, plural } from "../../view/format.ts";
import { renderComparison, renderLaunchReport, renderSummary } from "../../view/runs/launch-view.ts";
import { causeText, requireSuccess } from "../all-failed.ts";
import { addCommand, seedOption } from "../command.ts";
import { interruptible } from "../interrupted.ts";
import type { Io } from "../io.ts";
import { amount, finite, positiveAmount, positiveWhole } from "../options/numbers.ts";
import { addRunOptions, progressLine, type RunFlags, workRequest } from "../options/run-options.ts";
import { tellFailuresOnce } from "../repeated-failures.ts";
import { type BookFlags, withBook } from "../with-book.ts";

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
  retry?: { owner?: FailureOwner };
  pass: number;
}

interface CompareFlags extends BookFlags {
  pass: number;
}

export function addLaunch(program: Command, io: Io): void {
  const command = addCommand(program, "launch", {
    summary: "run an agent on every task, several times, and seal each rollout",
    description: `Run an agent on every task, several times, and seal each rollout. After a crash or an interruption,
the same command runs only the missing rollouts. If the agent, --samples or --seed changes, every rollout runs again.
Tasks are JSON Lines: {"prompt": …, "label": …, "metadata": {…}},
where metadata is the payload that the agent gets. Any other object is itself the payload.

The agent is a module (.mjs, .js, .ts) whose default export is a function (payload, context), a Python file, another program, or
a URL. context has seed, sample, signal, baseUrl, apiKey and rolloutConfig, among others. The function returns a reward
(a number), or an object with any of reward, metrics, finalState, ending, streams and calls. An exception is a failure
of the agent. A Python file or a program reads one JSON object from stdin, with payload and rollout_config among its fields, and prints
its result to stdout as one JSON object, with final_state instead of finalState. docs/reference/executor.md describes all of it.

Your key signs the rollouts. If there is none, the command makes one in $ROLLBOOK_HOME, else in ~/.config/rollbook, and says so.`,
    examples: [
      "rollbook launch --book runs --tasks tasks.jsonl --agent agent.mjs --samples 8 --concurrency 64",
      "rollbook launch --book runs --tasks tasks.jsonl --agent agent.mjs --time-limit 60 --json",
      "rollbook launch --book runs --tasks tasks.jsonl --agent agent.mjs --samples 8 --retry failed:agent",
      "rollbook launch compare before after --book runs",
    ],
  })
    .option("--tasks <file>", "required: the tasks, one JSON object a line; - reads stdin")
    .option("--samples <n>", "rollouts per task", positiveWhole, 1)
    .option("--exp <id>", "name of the experiment; a new name gives new rollouts", "default")
    .option(...PASS)
    .addOption(seedOption("fixes the seeds of all rollouts", 0n))
    .optionsGroup("Tasks and agent:")
    .option(
      "--model <id>",
      "name of the model that the agent asks for, rollout_config.model_id (default: none)",
    )
    .option(
      "--base-url <url>",
      "URL of the model server, with /v1, if there is no gateway: context.baseUrl and rollout_config.base_url; the key is OPENAI_API_KEY of the environment (default: none)",
    )
    .option(
      "--sampling <json>",
      "sampling parameters for the agent, rollout_config.sampling_params (default: none)",
      jsonObject,
    )
    .option(
      "--config <json>",
      "further fields of rollout_config, which the agent gets (default: none)",
      jsonObject,
    )
    .option(
      "--environment <ref@version>",
      "label of the environment that the agent works in, as NAME@VERSION; recorded with each rollout",
      toEnvironment,
      "local@1",
    )
    .option("--synthetic", "mark the rollouts as synthetic data")
    .addOption(
      new Option(
        "--rows <form>",
        "form of the task lines: with prompt and metadata (slime), or plain payloads; auto decides by the fields of each line",
      )
        .choices(["auto", "slime", "plain"])
        .default("auto"),
    )
    .optionsGroup("Limits and retries:")
    .option(
      "--time-limit <s>",
      "seconds for one rollout, then it is truncated (default: no limit)",
      positiveAmount,
    )
    .option(
      "--max-turns <n>",
      "turns of one rollout, then it is truncated (default: no limit)",
      positiveWhole,
    )
    .option(
      "--budget-usd <usd>",
      "US dollars for one rollout: the gateway starts no further call once the rollout has spent this amount. Calls to models without a price count as 0 (default: no limit)",
      amount,
    )
    .option(
      "--deadline <s>",
      "seconds for the whole launch; the rest runs at the next launch (default: no limit)",
      positiveAmount,
    )
    .option(
      "--retry <failed[:owner]>",
      `run again only the samples of this experiment whose last result is a failure, of this owner if it is named: ${failureOwner.options.join(", ")} (default: run all that are missing)`,
      retried,
    );
  addRunOptions(command, { queueDefault: "queue.db in the book", agentRequired: false }).action(
    (flags: LaunchFlags) => runLaunch(io, flags, command),
  );
  addCompare(command, io);
}

const PASS = ["--pass <reward>", "a rollout passes with this reward or more", finite, PASS_REWARD] as const;

function addCompare(launchCommand: Command, io: Io): void {
  addCommand(launchCommand, "compare <A> <B>", {
    summary: "compare two experiments task by task",
    description: `Compare two experiments of the book, as \`launch --exp\` named them, paired by task: every task
counts once, and the interval is over tasks. Of a task that was launched again with other options, only the last launch
counts, and of a sample that ran again only the last result.`,
    examples: ["rollbook launch compare before after --book runs"],
  })
    .option(...PASS)
    .action(async (a: string, b: string, _: CompareFlags, command: Command) => {
      // The parent command has options of the same names and consumes them first.
      const flags = command.optsWithGlobals<CompareFlags>();
      const comparison = await withBook(io, flags, async (book) =>
        compareLaunches(
          { a: await knownOutcomes(book, a), b: await knownOutcomes(book, b) },
          { passReward: flags.pass },
        ),
      );
      io.out(
        flags.json ? jsonLine({ ...comparison, names: { a, b } }) : renderComparison(comparison, { a, b }),
      );
    });
}

async function knownOutcomes(
  book: Parameters<typeof experimentOutcomes>[0],
  experiment: string,
): Promise<LaunchOutcome[]> {
  const outcomes = await experimentOutcomes(book, experiment);
  if (outcomes.length > 0) return outcomes;
  requireExperiment(await book.index(), experiment);
  throw new RollbookError(
    "not-found",
    { experiment },
    `experiment ${experiment} has rollouts, but no results to compare. \`rollbook artifact ls --exp ${experiment}\` lists them.`,
  );
}

async function runLaunch(io: Io, flags: LaunchFlags, command: Command): Promise<void> {
  // A required option of Commander would also be required by `launch compare`.
  const missing = [
    ...(flags.tasks === undefined ? ["'--tasks <file>'"] : []),
    ...(flags.agent === undefined ? ["'--agent <file|url>'"] : []),
  ];
  if (missing.length > 0)
    command.error(
      `error: required option${missing.length === 1 ? "" : "s"} ${missing.join(", ")} not specified`,
    );
  // A worker elsewhere may have a gateway, and gets the budget from the queue.
  if (flags.budgetUsd !== undefined && flags.gateway === undefined && flags.concurrency > 0)
    throw wrongUsage("--budget-usd has no effect without --gateway. Add --gateway, or remove --budget-usd");
  const tasks = flags.tasks === "-" ? { name: "stdin", stream: io.stdin } : flags.tasks;
  await interruptible(async (signal) => {
    const { log: print, end, ...followers } = progressLine(io);
    const { log, end: endLog } = tellFailuresOnce(print);
    const launched = launch(tasks, { ...workRequest(io, flags), ...settingsOf(flags), signal, log });
    const outcomes: LaunchOutcome[] = [];
    const policies = new Map<string, ResultPolicy>();
    const excluded: SealedResult[] = [];
    const onResult = (result: RolloutResult) => {
      outcomes.push(outcomeOf(result));
      if (result.state === "sealed") {
        if (isExcluded(result)) excluded.push(result);
        else if (outsideBaseline(result.ending) === undefined)
          for (const each of result.policies) policies.set(`${each.level} ${each.family}`, each);
      }
      if (flags.json) io.out(jsonLine({ kind: "rollout", ...result }));
    };
    const progress = await followLaunch(launched, { ...followers, onResult }).finally(() => {
      endLog();
      end();
    });
    const report = reportLaunch(outcomes, { passReward: flags.pass });
    const found = { progress, report, policies: [...policies.values()], excluded };
    finish(io, { ...found, flags, interrupted: signal.aborted });
  });
}

/** Commander turns the error into wrong usage, which names the option. */
function toEnvironment(text: string): string {
  if (environmentKey.safeParse(text).success) return text;
  throw new InvalidArgumentError("It must be NAME@VERSION, such as local@1.");
}

function settingsOf(flags: LaunchFlags) {
  const { samples, exp, model, baseUrl, sampling, config, seed, rows, timeLimit, maxTurns, budgetUsd } =
    flags;
  return {
    ...{ samples, exp, seed, rows, environment: flags.environment },
    extra: { ...config, ...(sampling === undefined ? {} : { sampling_params: sampling }) },
    dataSource: flags.synthetic ? ("synthetic" as const) : ("real" as const),
    ...given({ modelId: model, baseUrl }),
    limits: {
      ...(timeLimit === undefined ? {} : { timeMs: timeLimit * 1000 }),
      ...given({ maxTurns, budgetUsd }),
    },
    ...(flags.deadline === undefined ? {} : { deadlineMs: flags.deadline * 1000 }),
    ...(flags.retry === undefined ? {} : { retry: flags.retry }),
  };
}

interface Finished {
  readonly progress: Progress;
  readonly report: LaunchReport;
  /** Last revision of each family with choices in usable rollouts. */
  readonly policies: readonly ResultPolicy[];
  /** Results that the freshness check against --target excludes. */
  readonly excluded: readonly SealedResult[];
  readonly flags: LaunchFlags;
  readonly interrupted: boolean;
}

function finish(io: Io, { progress, report, policies, excluded, flags, interrupted }: Finished): void {
  if (flags.json) io.out(jsonLine({ kind: "summary", ...progress, report }));
  else if (progress.total > 0) io.out(renderSummary(progress) + renderLaunchReport(report));
  const unknown = progress.unpriced + progress.givenUp.unpriced;
  if (flags.budgetUsd !== undefined && unknown > 0)
    io.err(
      `warning: the cost of ${plural(unknown, "call")} is unknown. --budget-usd counts calls to models without a price as 0. State the \`price\` of every model in the gateway's file\n`,
    );
  if (excluded.length > 0) io.err(`warning: ${excludedText(excluded, progress, flags)}\n`);
  for (const each of policies) io.err(`${batchHint(each, flags)}\n`);
  const { total, done, dead } = progress;
  const left = total - done;
  if (left === 0) {
    if (progress.total === 0 && flags.retry !== undefined)
      io.err(`no sample of experiment ${flags.exp} has such a failure: nothing to run again\n`);
    else requireResult(progress, report, flags);
    return;
  }
  const why = interrupted
    ? "interrupted"
    : dead > 0
      ? `${plural(dead, "rollout")} set aside after the last attempt${causeText(report.failures, flags.json)}`
      : "the deadline passed";
  throw new RollbookError(
    "launch-incomplete",
    { total, done, dead },
    `${left} of ${plural(total, "rollout")} not done: ${why}. Give the same command again to run what is missing.`,
  );
}

/** Uses the verdict that was sealed with the result. A result of an earlier run may have been judged again since. */
function isExcluded({ earlier, receipt: { outcome } }: SealedResult): boolean {
  return !earlier && (outcome === "discarded" || outcome === "quarantined");
}

function excludedText(
  excluded: readonly SealedResult[],
  { done }: Progress,
  { book, exp, target }: LaunchFlags,
): string {
  const discarded = excluded.filter(({ receipt }) => receipt.outcome === "discarded").length;
  const counts = Object.entries({ discarded, quarantined: excluded.length - discarded })
    .filter(([, count]) => count > 0)
    .map(([name, count]) => `${count} ${name}`);
  const revisions = excluded.flatMap(({ policies }) => policies.map(({ revision }) => revision));
  const newest = revisions.at(-1) ?? "REVISION";
  return `${excluded.length} of ${plural(done, "rollout")} may not be used for training: ${counts.join(", ")} as too old or newer than the target ${target}. Judge them again against the newest revision: rollbook artifact admit${bookFlag(book)} --target ${newest} --exp ${exp}`;
}

function bookFlag(book: string | undefined): string {
  return book === undefined ? "" : ` --book ${book}`;
}

/** Command line of `batch assemble` for these rollouts. */
function batchHint({ family, level, revision }: ResultPolicy, { book, exp, samples }: LaunchFlags): string {
  const at = bookFlag(book);
  // Rollouts of one task are a group. A group of one has the advantage 0.
  const alone = samples === 1 ? " --advantage none" : "";
  return `a batch of these rollouts: rollbook batch assemble${at} --level ${level} --target ${revision} --family ${family} --exp ${exp}${alone}`;
}

function requireResult(progress: Progress, { failures }: LaunchReport, { tasks, json }: LaunchFlags): void {
  if (progress.total === 0)
    throw new RollbookError("no-tasks", { tasks }, `${tasks} holds no task. Write one JSON object a line.`);
  const remedy = "Correct the cause, then add --retry failed, or launch under another --exp.";
  requireSuccess({ progress, failures, json, remedy });
}

function retried(text: string): { owner?: FailureOwner } {
  const [what, owner, ...rest] = text.split(":");
  const known = failureOwner.options.find((each) => each === owner);
  if (what !== "failed" || rest.length > 0 || (owner !== undefined && known === undefined))
    throw new InvalidArgumentError(
      `It must be failed, or failed: and one of ${failureOwner.options.join(", ")}.`,
    );
  return known === undefined ? {} : { owner: known };
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
