/** `rollbook sim run`: runs an agent on simulated tasks, in parallel sandboxes, and says how many it solved. */
import type { Command } from "commander";
import { RollbookError } from "../../base/index.ts";
import { fieldOf, loadPolicy } from "../../book/judge/load-policy.ts";
import { loadAgent, type RolloutResult } from "../../collect/rollout/index.ts";
import { policyOfRouter } from "../../collect/sim/behaviour.ts";
import { mostCalls } from "../../collect/sim/models.ts";
import type { ModelRoute } from "../../collect/sim/routed-run.ts";
import { openSimRun, type SimRunOptions } from "../../collect/sim/run.ts";
import { type KnownValues, knownValues, policyValue, type SimWorld } from "../../collect/sim/world.ts";
import { routerOf } from "../../judge/evaluate/contenders.ts";
import type { Router } from "../../policy/index.ts";
import { type FamilySummary, summarise } from "../../view/family-summary.ts";
import { figure, jsonLine, plural, table } from "../../view/format.ts";
import { addCommand, positiveWhole } from "../command.ts";
import type { Io } from "../io.ts";
import { share } from "../options/judge-options.ts";
import { addSimOptions, type SimFlags, tableFrom, worldFrom } from "../options/sim-options.ts";
import { type BookRun, requireComplete, runOnBook, withGrader } from "../sim/run-on-book.ts";

interface RunFlags extends SimFlags {
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
    description: `Run an agent on every task of a folder, in parallel sandboxes, through launcher, queue and gateway, and seal
what happened. Hidden tests decide what a rollout earns. The same command again runs only what is missing.

Agents: \`chat\` drives a model, one of the simulated ones or what a router chooses; \`reference\` hands in the reference
solutions; any other name is an agent file as for launch, which gets the visible part of a task as its payload and returns
{ finalState: { files } }.

For the chat agent the exact expected reward is printed beside what was observed, and that of the best policy.`,
    examples: [
      "rollbook sim run --book runs --tasks tasks --agent reference --engine quickjs",
      "rollbook sim run --book runs --tasks tasks --model sim-small --workers 4 --engine quickjs --min-pass 0.1",
    ],
  })
    .requiredOption("--tasks <dir>", "the folder that `rollbook sim generate` wrote")
    .option("--agent <agent>", "chat, reference, or an agent file", "chat")
    .option("--model <name>", "the model that answers (default: the first one)")
    .option("--router <file>", "a static table that chooses the model of each rollout")
    .option(
      "--checkpoint <dir>",
      "a learned policy that chooses, as `train` wrote it; --router is its fallback",
    )
    .option(
      "--floor <c>",
      "confidence below which the fallback decides (default: the checkpoint's, else 0)",
      share,
    )
    .option("--fast", "look results up in the proofs instead of running them; agents chat and reference only")
    .option("--every-turn", "ask the router for every call, not once a rollout")
    .option("--time-limit <s>", "seconds for one rollout, then it is truncated (default: 120)", positiveWhole)
    .option(
      "--max-turns <n>",
      "model calls of one rollout, then it is truncated (default: 12)",
      positiveWhole,
    )
    .option("--min-pass <share>", "exit 1 unless at least this share passes all hidden tests", share);
  addSimOptions(command).action((flags: RunFlags) => run(io, flags));
}

async function run(io: Io, flags: RunFlags): Promise<void> {
  const world = worldFrom(flags);
  const { json, timeLimit, maxTurns } = flags;
  const agent = await agentFrom(flags.agent);
  const route = routeFrom(flags, world);
  const options = {
    route,
    limits: {
      ...(timeLimit === undefined ? {} : { timeMs: timeLimit * 1000 }),
      ...(maxTurns === undefined ? {} : { maxTurns }),
    },
    ...(json
      ? { onResult: (result: RolloutResult) => io.out(jsonLine({ kind: "rollout", ...result })) }
      : {}),
  };
  const ran = await withGrader(world, flags, (grader) =>
    runOnBook(io, flags, {
      ...options,
      open: (place) => openSimRun({ ...place, world, agent, grader }),
    }),
  );
  const families = summarise(ran.results, world);
  const { truncated } = ran.progress;
  const values = agent === "chat" ? exactValues(world, { route, maxTurns, truncated }) : undefined;
  io.out(
    json
      ? jsonLine({ kind: "summary", ...ran.progress, families, values })
      : render(ran, families) + renderValues(values),
  );
  requireComplete(ran);
  requirePassed(families.at(-1)!, flags.minPass);
}

async function agentFrom(name: string): Promise<SimRunOptions["agent"]> {
  return name === "chat" || name === "reference" ? name : loadAgent(name);
}

function routeFrom(flags: RunFlags, world: SimWorld): ModelRoute {
  const { model, router, checkpoint, everyTurn } = flags;
  const isRouted = router !== undefined || checkpoint !== undefined;
  if (model !== undefined && isRouted)
    throw new RollbookError("wrong-usage", {}, "--model excludes --router and --checkpoint. See --help.");
  if (everyTurn === true && !isRouted)
    throw new RollbookError("wrong-usage", {}, "--every-turn needs --router or --checkpoint. See --help.");
  if (flags.floor !== undefined && checkpoint === undefined)
    throw new RollbookError("wrong-usage", {}, "--floor needs --checkpoint. See --help.");
  if (!isRouted) return { kind: "model", model: model ?? world.models[0]!.name };
  return { kind: "router", router: routerFrom(flags, world), everyTurn: everyTurn === true };
}

function routerFrom({ router, checkpoint, floor }: RunFlags, world: SimWorld): Router {
  if (checkpoint === undefined) return { table: tableFrom(router!, world), floor: 0, exploration: 0 };
  return routerOf(
    fieldOf(loadPolicy(checkpoint), {
      ...(router === undefined ? {} : { table: router }),
      ...(floor === undefined ? {} : { floor }),
      exploration: 0,
    }),
  );
}

interface ExactValues {
  readonly expected: number;
  readonly best: number;
  readonly bestSingle: KnownValues["bestSingle"];
}

/** Undefined where no closed form is known: the router is asked for every turn, or limits cut models short. */
function exactValues(
  world: SimWorld,
  { route, maxTurns, truncated }: { route: ModelRoute; maxTurns: number | undefined; truncated: number },
): ExactValues | undefined {
  if (route.kind === "router" && route.everyTurn === true) return undefined;
  if (truncated > 0 || (maxTurns !== undefined && maxTurns < Math.max(...world.models.map(mostCalls))))
    return undefined;
  const { single, best, bestSingle } = knownValues(world);
  const expected =
    route.kind === "model" ? single[route.model]! : policyValue(world, policyOfRouter(route.router));
  return { expected, best, bestSingle };
}

function renderValues(values: ExactValues | undefined): string {
  if (values === undefined) return "";
  const { expected, best, bestSingle } = values;
  return `expected reward: ${expected.toFixed(4)} exactly; best policy ${best.toFixed(4)}, best single model ${bestSingle.value.toFixed(4)} (${bestSingle.model})\n`;
}

function render({ progress }: BookRun, families: readonly FamilySummary[]): string {
  const { done, total, earlier, truncated, failed } = progress;
  const parts = [
    `${done} of ${plural(total, "rollout")} sealed`,
    ...(earlier > 0 ? [`${earlier} of them earlier`] : []),
    ...(truncated > 0 ? [`${truncated} truncated`] : []),
    ...Object.entries(failed).map(([owner, count]) => `${count} failed by ${owner}`),
  ];
  return `${table(families, [
    { title: "family", cell: (each) => each.family },
    { title: "rollouts", align: "right", cell: (each) => String(each.rollouts) },
    { title: "passed", align: "right", cell: (each) => String(each.passed) },
    { title: "rate", align: "right", cell: (each) => each.passRate.toFixed(3) },
    {
      title: "95 %",
      align: "right",
      cell: ({ interval }) => `${interval[0].toFixed(3)} … ${interval[1].toFixed(3)}`,
    },
    {
      title: "reward",
      align: "right",
      cell: (each) => (each.meanReward === null ? "" : each.meanReward.toFixed(3)),
    },
    { title: "cost", align: "right", cell: (each) => `$${figure(each.costUsd)}` },
  ])}${parts.join(", ")}\n`;
}

function requirePassed({ passRate, passed, rollouts }: FamilySummary, least: number | undefined): void {
  if (least === undefined || passRate >= least) return;
  throw new RollbookError(
    "below-min-pass",
    { passed, rollouts, passRate, least },
    `${passed} of ${plural(rollouts, "rollout")} passed all hidden tests: ${passRate.toFixed(3)}, less than --min-pass ${least}.`,
  );
}
