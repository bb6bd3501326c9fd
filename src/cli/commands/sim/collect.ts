/** Implements `rollbook sim collect`: logs routing decisions with their probabilities in a world whose optimum is
 *  known. */
import { type Command, Option } from "commander";
import { wrongUsage } from "../../../book/decisions/index.ts";
import { collectDecisions, meanReward, standardErrors } from "../../../book/sim/index.ts";
import { BEHAVIOURS, type Behaviour } from "../../../collect/sim/index.ts";
import { jsonLine } from "../../../view/format.ts";
import { renderCollected } from "../../../view/runs/sim-view.ts";
import { addCommand } from "../../command.ts";
import { interruptible } from "../../interrupted.ts";
import type { Io } from "../../io.ts";
import { tableExample } from "../../options/judge-options.ts";
import { amount } from "../../options/numbers.ts";
import { progressLine } from "../../options/run-options.ts";
import { addSimOptions, placeRequest, requireComplete, type SimFlags } from "../../options/sim-options.ts";

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
    summary: "log routing decisions on simulated tasks, where the optimum is known",
    description: `Run the chat agent on every task of a folder while a behaviour policy chooses the model of each
rollout, and seal the decisions with their probabilities and rewards. The policy sees prompt and request fields only.
\`rollbook data export\` makes a routing dataset of the book. Prints the observed mean reward, and the exact values of
the behaviour policy, the best policy, the best single model and a uniform choice.

With --fast no program runs: the result of each solution is one that \`sim generate\` stored with the tasks, and the environment
of the rollouts is called sim-proofs. Choices, prices and rewards are the same as in a sandbox.

With --recorded the questions, the answers and their correctness come from a file of recorded answers of real models
(docs/reference/simulator.md): each rollout asks one question once.

${tableExample("sim-large", "sim-small")}`,
    examples: [
      "rollbook sim collect --book runs --tasks tasks --policy uniform --samples 2 --engine quickjs",
      "rollbook sim collect --book runs --tasks tasks --policy epsilon-greedy --epsilon 0.2 --table table.yaml --fast",
    ],
  })
    .option("--tasks <dir>", "the folder that `rollbook sim generate` wrote")
    .option("--recorded <file>", "recorded answers of real models instead of tasks, described in YAML")
    .addOption(new Option("--policy <policy>", "the behaviour policy").choices(BEHAVIOURS).default("uniform"))
    .option("--table <file>", "a static table, for epsilon-greedy and table (default: the first model)")
    .option(
      "--epsilon <share>",
      "share of uniformly random choices, for epsilon-greedy and softmax (default: 0.1)",
      amount,
    )
    .option("--temperature <t>", "temperature of softmax; lower is greedier (default: 0.5)", amount)
    .option("--fast", "run no programs: look up the results that `sim generate` stored with the tasks");
  addSimOptions(command).action((flags: CollectFlags) => collect(io, flags));
}

async function collect(io: Io, flags: CollectFlags): Promise<void> {
  refuseIdle(flags);
  const { tasks, recorded, models, policy, table, epsilon, temperature, fast } = flags;
  const { values, families, results, progress } = await interruptible((signal) => {
    const { end, ...followers } = progressLine(io);
    return collectDecisions({
      ...placeRequest(io, flags),
      ...followers,
      from: recorded === undefined ? { tasks: tasks!, models } : { recorded },
      ...{ policy, table, epsilon, temperature, fast, signal },
    }).finally(end);
  });
  const observed = meanReward(results);
  const z = standardErrors(observed, values.behaviour);
  io.out(
    flags.json
      ? jsonLine({ kind: "summary", policy, observed, z, values, families, ...progress })
      : renderCollected({ progress, families, values, observed, z, policy }),
  );
  requireComplete(progress);
}

/** Behaviours that each option affects; for others it would be ignored. */
const MEANT_FOR = {
  table: ["epsilon-greedy", "table"],
  epsilon: ["epsilon-greedy", "softmax"],
  temperature: ["softmax"],
} as const satisfies Partial<Record<keyof CollectFlags, readonly Behaviour[]>>;

function refuseIdle(flags: CollectFlags): void {
  const { policy, recorded, tasks, epsilon } = flags;
  if ((tasks === undefined) === (recorded === undefined))
    throw wrongUsage("give either --tasks or --recorded");
  if (epsilon !== undefined && epsilon > 1) throw wrongUsage(`--epsilon ${epsilon} is not in 0 … 1`);
  for (const [name, policies] of Object.entries(MEANT_FOR))
    if (flags[name as keyof typeof MEANT_FOR] !== undefined && !policies.some((each) => each === policy))
      throw wrongUsage(
        `--${name} has no effect with --policy ${policy}. It works with ${policies.join(" and ")}`,
      );
  for (const name of ["models", "fast"] as const)
    if (recorded !== undefined && flags[name] !== undefined)
      throw wrongUsage(`--${name} is for --tasks: with --recorded nothing is simulated and nothing is run`);
}
