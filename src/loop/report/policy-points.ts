/** Computes cost and reward per rollout for the policies of a run: exact in a simulated world, else estimated from the
 *  log.
 *  In: a run whose last window has ended. Out: points; empty if the log cannot support an estimate. */
import { isRollbookError } from "../../base/index.ts";
import { evaluateCheckpoint } from "../../book/judge/index.ts";
import type { BookOnDisk } from "../../book/open/index.ts";
import { readWorld } from "../../book/sim/index.ts";
import { expectedOutcome, optimalPolicy, policyOfRouter } from "../../collect/sim/index.ts";
import type { LoopPolicy } from "../../contract/index.ts";
import type { CostQualityPoint } from "../../view/runs/demo-summary.ts";
import { revisionsOf } from "../candidates.ts";
import type { LoopConfig } from "../config.ts";
import { type RunState, servedAfter } from "../fold.ts";
import { collectedIn, sourcesOf } from "../members.ts";
import { checkpointOf, routerFor } from "../routers.ts";
import { judgedDiscount } from "../run-warnings.ts";
import { choiceFamily } from "../world/index.ts";

type PolicyPoint = Omit<CostQualityPoint, "reward"> & { readonly reward?: number | undefined };

interface PointsRequest {
  readonly book: BookOnDisk;
  readonly config: LoopConfig;
  readonly state: RunState;
  /** Folder of the run's checkpoints; missing ones are restored from the book. */
  readonly folder: string;
}

interface NamedPolicy {
  readonly name: string;
  readonly kind: CostQualityPoint["kind"];
  readonly policy: LoopPolicy;
}

export async function policyPoints(request: PointsRequest): Promise<readonly PolicyPoint[]> {
  return request.config.world.kind === "simulator" ? exactPoints(request) : estimatedPoints(request);
}

/** Serving policy, and the other policies that the last window trained. */
function policiesOf(state: RunState): NamedPolicy[] {
  const last = state.windows.at(-1)!;
  const served = servedAfter(state, last.number);
  const id = served.kind === "revision" ? served.revision.id : undefined;
  const others = revisionsOf(last).filter(({ revision }) => revision.id !== id);
  return [
    ...(served.kind === "revision"
      ? [{ name: served.revision.id, kind: "served" as const, policy: served }]
      : []),
    ...others.map(({ revision }) => ({
      ...{ name: revision.id, kind: "candidate" as const, policy: { kind: "revision" as const, revision } },
    })),
  ];
}

async function exactPoints(request: PointsRequest): Promise<PolicyPoint[]> {
  const { config, state } = request;
  const world = readWorld(
    config.world as Extract<LoopConfig["world"], { kind: "simulator" }>,
    "world.models",
  );
  const models = world.models.map(({ name }) => name);
  const points: PolicyPoint[] = models.map((name, m) => ({
    ...{ name, kind: "model", ...expectedOutcome(world, () => models.map((_, i) => (i === m ? 1 : 0))) },
  }));
  const behaviour = { name: "behaviour", kind: "behaviour", policy: { kind: "behaviour" } } as const;
  for (const { name, kind, policy } of [behaviour, ...policiesOf(state)]) {
    const checkpoint = await checkpointOf(policy, request);
    const router = routerFor({
      ...{ config, world: { models }, checkpoint, exploration: config.exploration.serve },
    });
    points.push({ name, kind, ...expectedOutcome(world, policyOfRouter(router)) });
  }
  points.push({ name: "optimum", kind: "optimum", ...expectedOutcome(world, optimalPolicy(world)) });
  return points;
}

/** Estimates from the rows that judged the last window. */
async function estimatedPoints(request: PointsRequest): Promise<PolicyPoint[]> {
  const { book, config, state } = request;
  const contents = await collectedIn(book, sourcesOf(config, state, state.windows.at(-1)!));
  const points = new Map<string, PolicyPoint>();
  for (const { name, kind, policy } of policiesOf(state)) {
    const { table, floor, exploration, seed } = config;
    try {
      const { evaluation } = await evaluateCheckpoint(book, {
        contents,
        family: choiceFamily(config.world),
        order: "id",
        table,
        exploration: exploration.serve,
        seed: BigInt(seed),
        discount: judgedDiscount(config),
        ...(typeof floor === "number" ? { floor } : {}),
        checkpoint: (await checkpointOf(policy, request))!,
      });
      const { contenders, frontier, candidates } = evaluation;
      for (const { name: contender, values } of contenders) {
        const own = contender === "learned" ? { name, kind } : contender === "behaviour" ? LOG : undefined;
        if (own !== undefined && values.cost !== undefined)
          points.set(own.name, {
            ...{ ...own, costUsd: values.cost.estimate.value },
            quality: (values.quality ?? values.reward)!.estimate.value,
          });
      }
      for (const each of "hull" in frontier ? (frontier.hull?.points ?? []) : [])
        if (candidates.includes(each.name))
          points.set(each.name, {
            name: each.name,
            kind: "model",
            costUsd: each.cost,
            quality: each.quality,
          });
    } catch (error) {
      if (!isRollbookError(error, "empty-split") && !isRollbookError(error, "too-few-units")) throw error;
    }
  }
  return [...points.values()];
}

const LOG = { name: "behaviour of the log", kind: "behaviour" } as const;
