/** `rollbook sim collect`: logs routing decisions with their probabilities in a world whose optimum is known. */
import { type Command, InvalidArgumentError, Option } from "commander";
import { RollbookError } from "../../base/index.ts";
import { BEHAVIOURS, type Behaviour, behaviourRouter, policyOfRouter } from "../../collect/sim/behaviour.ts";
import { openRecordedRun, recordedWorld } from "../../collect/sim/recorded.ts";
import type { ModelRoute } from "../../collect/sim/routed-run.ts";
import { openSimRun } from "../../collect/sim/run.ts";
import {
  type FamilyValues,
  type KnownValues,
  type KnownWorld,
  knownValues,
  policyValue,
  valuesByFamily,
} from "../../collect/sim/world.ts";
import type { Router } from "../../policy/index.ts";
import {
  meanReward,
  type ObservedReward,
  sayDistance,
  sayObserved,
  standardErrors,
} from "../../view/family-summary.ts";
import { jsonLine, plural, table } from "../../view/format.ts";
import { addCommand } from "../command.ts";
import type { Io } from "../io.ts";
import { addSimOptions, type SimFlags, tableFrom, worldFrom } from "../options/sim-options.ts";
import { readRecorded } from "../sim/read-recorded.ts";
import { type BookRun, requireComplete, runOnBook, withGrader } from "../sim/run-on-book.ts";

interface CollectFlags extends SimFlags {
  tasks?: string;
  recorded?: string;
  policy: Behaviour;
  table?: string;
  epsilon?: number;
  temperature?: number;
  fast?: true;
}

export function addSimCollect(sim: Command, io: Io): void {
  const command = addCommand(sim, "collect", {
    summary: "log routing decisions in a world whose optimum is known",
    description: `Run the chat agent on every task of a folder while a behaviour policy chooses the model of each rollout, and
seal the decisions with their probabilities and rewards. The policy sees prompt and request fields only. \`rollbook data
export\` makes a routing dataset of the book. Prints the exact values of the behaviour policy, of the best policy, of
the best single model and of an even choice, beside what was observed.

With --fast nothing is run: what each solution does is looked up in the proofs of the tasks, and the environment of the
rollouts is called sim-proofs. Choices, prices and rewards are the same as in a sandbox.

With --recorded the questions, the answers and what was right come from a file of recorded answers of real models
(docs/simulator.md): each rollout asks one question once.`,
    examples: [
      "rollbook sim collect --book runs --tasks tasks --policy uniform --samples 2 --engine quickjs",
      "rollbook sim collect --book runs --tasks tasks --policy epsilon-greedy --epsilon 0.2 --table table.yaml --fast",
    ],
  })
    .option("--tasks <dir>", "the folder that `rollbook sim generate` wrote")
    .option("--recorded <file>", "recorded answers of real models instead of tasks, described in YAML")
    .addOption(new Option("--policy <policy>", "the behaviour policy").choices(BEHAVIOURS).default("uniform"))
    .option("--table <file>", "a static table, for epsilon-greedy and table (default: the first model)")
    .option("--epsilon <share>", "share of even choices: epsilon-greedy, softmax (default: 0.1)", number)
    .option("--temperature <t>", "of softmax: small is greedy (default: 0.5)", number)
    .option("--fast", "look results up in the proofs instead of running them");
  addSimOptions(command).action((flags: CollectFlags) => collect(io, flags));
}

async function collect(io: Io, flags: CollectFlags): Promise<void> {
  refuseIdle(flags);
  const { known, families, run } = await sourceFrom(io, flags);
  const router = routerFrom(flags, known);
  const values = { behaviour: policyValue(known, policyOfRouter(router)), ...knownValues(known) };
  const ran = await run({ kind: "router", router });
  const observed = meanReward(ran.results);
  const z = standardErrors(observed, values.behaviour);
  io.out(
    flags.json
      ? jsonLine({ kind: "summary", policy: flags.policy, observed, z, values, families, ...ran.progress })
      : renderFamilies(families) + render({ ran, values, observed, z, policy: flags.policy }),
  );
  requireComplete(ran);
}

interface Source {
  readonly known: KnownWorld;
  /** Of simulated tasks. */
  readonly families: readonly FamilyValues[];
  run(route: ModelRoute): Promise<BookRun>;
}

async function sourceFrom(io: Io, flags: CollectFlags): Promise<Source> {
  const { tasks, recorded, models } = flags;
  if ((tasks === undefined) === (recorded === undefined))
    throw wrongUsage("give either --tasks or --recorded");
  if (recorded !== undefined) {
    const set = await readRecorded(recorded);
    return {
      known: recordedWorld(set),
      families: [],
      run: (route) => runOnBook(io, flags, { route, open: (place) => openRecordedRun({ ...place, set }) }),
    };
  }
  const world = worldFrom({ tasks: tasks!, ...(models === undefined ? {} : { models }) });
  return {
    known: world,
    families: valuesByFamily(world),
    run: (route) =>
      withGrader(world, flags, (grader) =>
        runOnBook(io, flags, {
          route,
          open: (place) => openSimRun({ ...place, world, grader, agent: "chat" }),
        }),
      ),
  };
}

/** Which behaviours an option means something to: given to others, it would be ignored. */
const MEANT_FOR = {
  table: ["epsilon-greedy", "table"],
  epsilon: ["epsilon-greedy", "softmax"],
  temperature: ["softmax"],
} as const satisfies Partial<Record<keyof CollectFlags, readonly Behaviour[]>>;

function refuseIdle(flags: CollectFlags): void {
  const { policy, recorded } = flags;
  for (const [name, policies] of Object.entries(MEANT_FOR))
    if (flags[name as keyof typeof MEANT_FOR] !== undefined && !policies.some((each) => each === policy))
      throw wrongUsage(`--${name} says nothing to --policy ${policy}, only to ${policies.join(" and ")}`);
  for (const name of ["models", "fast"] as const)
    if (recorded !== undefined && flags[name] !== undefined)
      throw wrongUsage(`--${name} is for --tasks: with --recorded nothing is simulated and nothing is run`);
}

function wrongUsage(what: string): RollbookError {
  return new RollbookError("wrong-usage", {}, `${what}. See --help.`);
}

function routerFrom({ policy, table, epsilon, temperature }: CollectFlags, world: KnownWorld): Router {
  if (epsilon !== undefined && epsilon > 1)
    throw new RollbookError("wrong-usage", { epsilon }, `--epsilon ${epsilon} is not in 0 … 1. See --help.`);
  return behaviourRouter(policy, {
    models: world.candidates.map(({ id }) => id),
    ...(table === undefined ? {} : { table: tableFrom(table, world) }),
    ...(epsilon === undefined ? {} : { epsilon }),
    ...(temperature === undefined ? {} : { temperature }),
  });
}

/** Exact values of every model by family; a router is told none of it. */
function renderFamilies(families: readonly FamilyValues[]): string {
  if (families.length === 0) return "";
  return table(families, [
    { title: "family", cell: (each) => each.family },
    { title: "tasks", align: "right", cell: (each) => String(each.tasks) },
    ...Object.keys(families[0]!.single).map((name) => ({
      ...{ title: name, align: "right" as const },
      cell: (each: FamilyValues) => each.single[name]!.toFixed(3),
    })),
    { title: "best", align: "right", cell: (each) => each.best.toFixed(3) },
  ]);
}

function render(options: {
  ran: BookRun;
  policy: Behaviour;
  values: KnownValues & { behaviour: number };
  observed: ObservedReward;
  z: number | null;
}): string {
  const { ran, policy, values, observed, z } = options;
  const { best, bestSingle, uniform, behaviour } = values;
  const rows = [
    { name: "best policy", value: best },
    { name: `best single model (${bestSingle.model})`, value: bestSingle.value },
    { name: "even choice", value: uniform },
    { name: `behaviour (${policy})`, value: behaviour },
  ];
  const exact = table(rows, [
    { title: "expected reward", cell: (row) => row.name },
    { title: "exact", align: "right", cell: (row) => row.value.toFixed(4) },
  ]);
  return `${exact}observed: ${sayObserved(observed)} over ${plural(observed.count, "rollout")}, ${ran.progress.done} sealed\n${sayDistance(z)}`;
}

function number(text: string): number {
  if (!/^\d+(\.\d+)?$/.test(text)) throw new InvalidArgumentError("It must be a number, such as 0.2.");
  return Number(text);
}
