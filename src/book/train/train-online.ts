/** Trains a policy by acting: PPO on CartPole, or on the simulator's tasks with a routing decision at every turn.
 *  In: a world, a config, a seed. Out: a checkpoint with its revision, written to the given folder. Proved tasks are
 *  played in closed form: no program is run. The model's config contains the digest of the world. */
import { type Clock, type Digest, digestJson, rngFrom, systemClock } from "../../base/index.ts";
import { turnEnvironment } from "../../collect/sim/index.ts";
import {
  CART_POLE_SPEC,
  type FitHooks,
  makeCartPole,
  type OnlineReport,
  type PpoConfig,
  type PpoWorld,
  trainPpo,
} from "../../learn/index.ts";
import {
  type Checkpoint,
  DEFAULT_FEATURES,
  type FeatureSpec,
  readCheckpoint,
  sealCheckpoint,
  writeCheckpoint,
} from "../../policy/index.ts";
import { readWorld } from "../sim/index.ts";
import { removeTrainingState, requireFreeFolder, trainingState } from "./training-state.ts";

export type OnlineWorld =
  | { readonly kind: "cart-pole" }
  | {
      readonly kind: "simulator";
      /** Folder of proved tasks. */
      readonly tasks: string;
      /** Declared models as YAML (default: the five built-in models). */
      readonly models?: string | undefined;
      readonly spec?: FeatureSpec | undefined;
    };

interface OnlineRequest {
  readonly world: OnlineWorld;
  readonly config?: PpoConfig;
  readonly id: string;
  /** Family of the new revision (default: router). */
  readonly policy?: string;
  /** Folder of the parent checkpoint. */
  readonly parent?: string | undefined;
  readonly out: string;
  readonly seed?: bigint;
  readonly clock?: Clock;
  readonly progress?: FitHooks["progress"];
}

export interface OnlineTrained {
  readonly checkpoint: Checkpoint;
  readonly report: OnlineReport;
  readonly world: Digest;
}

export function trainOnline(request: OnlineRequest): OnlineTrained {
  const { id, out, seed = 0n, policy = "router", clock = systemClock, progress } = request;
  requireFreeFolder(out);
  const world = openWorld(request.world);
  const hooks = { saver: trainingState(out), progress };
  const { model, report } = trainPpo(world, request.config ?? {}, rngFrom(seed), hooks);
  const parent = request.parent === undefined ? undefined : readCheckpoint(request.parent).revision.record;
  const checkpoint = sealCheckpoint(model, {
    ...{ family: policy, id, batches: [], seed, steps: report.steps, producedAtMs: clock.nowMs() },
    ...(parent === undefined ? {} : { parent }),
  });
  writeCheckpoint(out, checkpoint);
  removeTrainingState(out);
  return { checkpoint, report, world: world.digest };
}

function openWorld(world: OnlineWorld): PpoWorld {
  switch (world.kind) {
    case "cart-pole":
      return {
        make: () => makeCartPole(),
        spec: CART_POLE_SPEC,
        digest: digestJson("rollbook.cart-pole.v1", { limit: 500 }),
      };
    case "simulator": {
      const sim = readWorld(world);
      return { make: () => turnEnvironment(sim), spec: world.spec ?? TURN_FEATURES, digest: sim.digest };
    }
    default:
      return world satisfies never;
  }
}

/** Features of a turn that a router sees: the prompt in few words, and the length of the conversation. */
const TURN_FEATURES: FeatureSpec = {
  ...DEFAULT_FEATURES,
  wordBuckets: 256,
  fields: [{ name: "messages", kind: "number" }],
};
