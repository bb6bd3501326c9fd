/** Implements `rollbook train ppo`: trains a policy by acting, on CartPole or on simulated tasks. */
import { type Command, Option } from "commander";
import { given } from "../../../base/index.ts";
import { wrongUsage } from "../../../book/decisions/index.ts";
import { type OnlineWorld, readSpec, trainOnline } from "../../../book/train/index.ts";
import { jsonLine } from "../../../view/format.ts";
import { onlineJson, renderCurvePoint, renderOnline } from "../../../view/train-view.ts";
import { addCommand, seedOption } from "../../command.ts";
import type { Io } from "../../io.ts";
import { nonNegative, positiveWhole, share } from "../../options/numbers.ts";

interface PpoFlags {
  env: OnlineWorld["kind"];
  tasks?: string;
  models?: string;
  features?: string;
  out: string;
  id: string;
  policy: string;
  parent?: string;
  seed: bigint;
  json?: boolean;
  steps: number;
  environments: number;
  horizon: number;
  epochs: number;
  batch: number;
  rate: number;
  discount?: number;
  entropy: number;
}

export function addPpo(train: Command, io: Io): void {
  addCommand(train, "ppo", {
    summary: "proximal policy optimisation: a network that learns by acting",
    description: `Proximal policy optimisation: a network that learns by acting in a world. The checkpoint is a
function of world, options and seed. --env simulator routes every turn of generated tasks (\`rollbook sim generate\`)
and computes results from their proofs; no program is run. It writes its state to OUT.training as it goes. After a
kill, the same command continues the training and ends with the same weights.`,
    examples: ["rollbook train ppo --env cart-pole --steps 20000 --out policies/ppo --id balance-1"],
  })
    .addOption(
      new Option("--env <world>", "the world: cart-pole is a test problem, simulator routes tasks")
        .choices(["cart-pole", "simulator"])
        .makeOptionMandatory(),
    )
    .option("--tasks <dir>", "required by --env simulator: the folder that `sim generate` wrote")
    .option("--models <file>", "of --env simulator: simulated models, in YAML (default: five built-in ones)")
    .option(
      "--features <file>",
      "of --env simulator: what the network reads of a request, as a feature spec in JSON, described in docs/reference/learn.md (default: the words of the prompt and measures such as its length)",
    )
    .requiredOption("--out <dir>", "the checkpoint's folder; never overwritten")
    .requiredOption("--id <id>", "the id of the new revision")
    .option("--policy <family>", "the family of the new revision", "router")
    .option(
      "--parent <dir>",
      "the checkpoint of the previous revision, which the new one follows; its weights are not read (default: none)",
    )
    .option("--steps <n>", "steps in the world, in total", positiveWhole, 100_000)
    .option("--environments <n>", "copies of the world that run in parallel", positiveWhole, 8)
    .option("--horizon <n>", "steps of each world between two updates", positiveWhole, 128)
    .option("--epochs <n>", "passes over the steps that an update learns from", positiveWhole, 10)
    .option("--batch <n>", "steps of a minibatch", positiveWhole, 128)
    .option(
      "--rate <x>",
      "learning rate, the step size of the weights, at the first update; it decreases to 0 at the last",
      nonNegative,
      1e-3,
    )
    .option(
      "--discount <g>",
      "discount of a reward one step later, 0 … 1 (default: 0.99; 1 for --env simulator)",
      share,
    )
    .option("--entropy <x>", "weight of the entropy bonus, 0 or more", nonNegative, 0)
    .addOption(seedOption("fixes worlds, draws and the first weights", 0n))
    .action((flags: PpoFlags) => run(io, flags));
}

function run(io: Io, flags: PpoFlags): void {
  const { id, policy, parent, out, seed, steps, environments, horizon, epochs, batch, rate, entropy } = flags;
  const discount = flags.discount ?? (flags.env === "simulator" ? 1 : 0.99);
  const trained = trainOnline({
    ...{ world: worldOf(flags), id, policy, parent, out, seed, clock: io.clock },
    config: { steps, environments, horizon, epochs, batch, rate, entropy, discount },
    ...(io.live ? { progress: (point) => io.err(renderCurvePoint(point)) } : {}),
  });
  const facts = { ...trained, id, out };
  io.out(flags.json === true ? jsonLine(onlineJson(facts)) : renderOnline(facts));
}

function worldOf({ env, tasks, models, ...flags }: PpoFlags): OnlineWorld {
  if (env === "cart-pole") {
    if (tasks !== undefined || models !== undefined || flags.features !== undefined)
      throw wrongUsage(
        "--tasks, --models and --features have no effect with --env cart-pole. Remove them, or use --env simulator",
      );
    return { kind: env };
  }
  if (tasks === undefined)
    throw wrongUsage("--env simulator needs --tasks, the folder that `rollbook sim generate` wrote");
  return { kind: env, tasks, models, spec: readSpec(given({ features: flags.features })) };
}
