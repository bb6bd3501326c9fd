/** Implements `rollbook sim run`: runs an agent on simulated tasks, in parallel sandboxes, and reports the number of
 *  solved tasks. */
import type { Command } from "commander";
import { RollbookError } from "../../../base/index.ts";
import { outcomeOf, reportLaunch } from "../../../book/collect/index.ts";
import { wrongUsage } from "../../../book/decisions/index.ts";
import { type FamilySummary, simulate, summarise } from "../../../book/sim/index.ts";
import type { RolloutResult } from "../../../collect/rollout/index.ts";
import { jsonLine, plural } from "../../../view/format.ts";
import { renderSimulated } from "../../../view/runs/sim-view.ts";
import { requireSuccess } from "../../all-failed.ts";
import { addCommand } from "../../command.ts";
import { interruptible } from "../../interrupted.ts";
import type { Io } from "../../io.ts";
import { positiveWhole, share } from "../../options/numbers.ts";
import { addIsolationOptions, type IsolationFlags, progressLine } from "../../options/run-options.ts";
import { addSimOptions, placeRequest, requireComplete, type SimFlags } from "../../options/sim-options.ts";

interface SimRunFlags extends SimFlags, IsolationFlags {
  tasks: string;
  agent: string;
  model?: string;
  router?: string;
  checkpoint?: string;
  floor?: number;
  fast?: true;
  everyTurn?: true;
  timeLimit?: number;
  maxTurns?: number;
  minPass?: number;
}

export function addSimRun(sim: Command, io: Io): void {
  const command = addCommand(sim, "run", {
    summary: "run an agent on simulated tasks in parallel sandboxes",
    description: `Run an agent on every task of a folder, in parallel sandboxes, through launcher, queue and gateway,
and seal each rollout. Hidden tests decide the reward. The same command again runs only the missing rollouts.

Agents: \`chat\` asks a simulated model: that of --model, or the one that --router or --checkpoint chooses. The command
then also prints the exact expected reward, and that of the best policy. \`reference\` hands in the reference
solutions. Any other name is an agent file as for launch: it gets the visible part of a task as its payload and
returns { finalState: { files } }.`,
    examples: [
      "rollbook sim run --book runs --tasks tasks --agent reference --engine quickjs",
      "rollbook sim run --book runs --tasks tasks --model sim-small --workers 4 --engine quickjs --min-pass 0.1",
    ],
  })
    .requiredOption("--tasks <dir>", "the folder that `rollbook sim generate` wrote")
    .option("--agent <agent>", "chat, reference, or an agent file", "chat")
    .option("--model <name>", "the simulated model that answers (default: the first one of --models)")
    .option(
      "--router <file>",
      "a static table, in YAML, that chooses the model of each rollout (default: --model answers all)",
    )
    .option(
      "--checkpoint <dir>",
      "a learned policy that chooses, as `train` wrote it; --router is its fallback (default: none)",
    )
    .option(
      "--floor <c>",
      "confidence below which the fallback decides (default: the checkpoint's, else 0)",
      share,
    )
    .option(
      "--fast",
      "run no programs: look up the results that `sim generate` stored with the tasks; agents chat and reference only",
    )
    .option("--every-turn", "ask the router for every call, not once a rollout")
    .option("--time-limit <s>", "seconds for one rollout, then it is truncated (default: 120)", positiveWhole)
    .option(
      "--max-turns <n>",
      "model calls of one rollout, then it is truncated (default: 12)",
      positiveWhole,
    )
    .option(
      "--min-pass <share>",
      "exit 1 unless at least this share of the rollouts, 0 … 1, passes all hidden tests (default: no limit)",
      share,
    );
  addSimOptions(addIsolationOptions(command)).action((flags: SimRunFlags) => run(io, flags));
}

async function run(io: Io, flags: SimRunFlags): Promise<void> {
  refuseIdle(flags);
  const {
    json,
    timeLimit,
    tasks,
    models,
    agent,
    model,
    router,
    checkpoint,
    floor,
    everyTurn,
    fast,
    maxTurns,
  } = flags;
  const { world, values, results, progress } = await interruptible((signal) => {
    const { end, ...followers } = progressLine(io);
    return simulate({
      ...placeRequest(io, flags),
      ...followers,
      ...{ tasks, models, agent, model, router, checkpoint, floor, everyTurn, fast, maxTurns, signal },
      ...{ isolation: flags.isolation, shared: flags.share },
      ...(timeLimit === undefined ? {} : { timeMs: timeLimit * 1000 }),
      ...(json
        ? { onResult: (result: RolloutResult) => io.out(jsonLine({ kind: "rollout", ...result })) }
        : {}),
    }).finally(end);
  });
  const families = summarise(results, world);
  const { failures } = reportLaunch(results.map(outcomeOf));
  io.out(
    json
      ? jsonLine({ kind: "summary", ...progress, families, values })
      : renderSimulated({ progress, families, values, failures }),
  );
  requireComplete(progress);
  requirePassed(families.at(-1)!, flags.minPass);
  const remedy = "Correct the cause, then give the command again with another --exp.";
  requireSuccess({ progress, failures, json, remedy });
}

function refuseIdle({ model, router, checkpoint, everyTurn, floor }: SimRunFlags): void {
  const isRouted = router !== undefined || checkpoint !== undefined;
  if (model !== undefined && isRouted) throw wrongUsage("--model excludes --router and --checkpoint");
  if (everyTurn === true && !isRouted) throw wrongUsage("--every-turn needs --router or --checkpoint");
  if (floor !== undefined && checkpoint === undefined) throw wrongUsage("--floor needs --checkpoint");
}

function requirePassed({ passRate, passed, rollouts }: FamilySummary, least: number | undefined): void {
  if (least === undefined || passRate >= least) return;
  throw new RollbookError(
    "below-min-pass",
    { passed, rollouts, passRate, least },
    `${passed} of ${plural(rollouts, "rollout")} passed all hidden tests: ${passRate.toFixed(3)}, less than --min-pass ${least}.`,
  );
}
