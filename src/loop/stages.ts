/** The stages of a window. Each reads what stands in the book, does one thing, and says which transition follows.
 *  A stage that was cut short is done again from its beginning: what it finds made already it takes as it is. */
import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import {
  canonicalize,
  compareUtf8,
  type Digest,
  digestJson,
  type Id,
  type Json,
  parseId,
  plural,
  RollbookError,
  rngFrom,
} from "../base/index.ts";
import type { Identity } from "../book/collect/index.ts";
import { cutWindow, type TransitionRecords } from "../book/loop/index.ts";
import type { BookOnDisk } from "../book/open/index.ts";
import { growReplay } from "../book/replay/index.ts";
import { trainPolicy } from "../book/train/index.ts";
import type { Progress, RolloutResult } from "../collect/rollout/index.ts";
import {
  batchContent,
  encodeWire,
  GateVerdict,
  LoopMembers,
  type LoopPolicy,
  type LoopTransition,
  type RevisionKey,
  type SealedBlob,
  seal,
} from "../contract/index.ts";
import { digestRouter, readCheckpoint } from "../policy/index.ts";
import { candidatesOf, judgeCandidates, revisionsOf } from "./candidates.ts";
import type { LoopConfig } from "./config.ts";
import { type LoopWindow, type RunState, servedAfter } from "./fold.ts";
import { learnerOf } from "./learner.ts";
import { collectedIn, sourcesOf } from "./members.ts";
import { checkpointOf, routerFor, routerKey, routerRevision } from "./routers.ts";
import { type CollectOptions, drawRows, type LoopWorld } from "./world/index.ts";

export interface StageContext {
  readonly book: BookOnDisk;
  readonly config: LoopConfig;
  readonly world: LoopWorld;
  /** Operational files of the run: checkpoints and queues, all of which can be made again. */
  readonly folder: string;
  readonly identity: Identity;
  readonly signal: AbortSignal;
  readonly onProgress: (window: number, progress: Progress) => void;
  readonly log: (line: string) => void;
}

/** What follows from a stage: the step of the transition, and what enters the book with it. */
export interface StageEnd {
  readonly step: LoopTransition["step"];
  readonly records?: TransitionRecords;
  readonly beside?: readonly SealedBlob[];
}

interface At {
  readonly state: RunState;
  readonly window: LoopWindow;
}

/** `policy`: what collects. */
export async function plan(
  context: StageContext,
  { state, policy, releases }: { state: RunState; policy: LoopPolicy; releases: number },
): Promise<StageEnd> {
  const { book, config, world } = context;
  const checkpoint = await checkpointOf(policy, { ...context, state });
  const router = routerFor({ config, world, checkpoint, exploration: config.exploration.collect });
  const key = routerKey(router);
  const revision = routerRevision(world.family, key, { releases, atMs: book.clock.nowMs() });
  const known = (await book.index())
    .named(key.id)
    .find(({ kind, fields }) => kind === revision.kind && fields.number !== undefined);
  return {
    step: {
      ...{ state: "planned", config: config.digest, world: world.digest, policy, router: key, releases },
      ...(world.exact === undefined ? {} : { value: world.exact.value(router), best: world.exact.best }),
    },
    records: { router: known?.digest ?? revision.digest },
    beside: known === undefined ? [revision] : [],
  };
}

/** Fixes who belongs to the window, before anything runs. */
export function assign({ config, world }: StageContext, { window }: At): StageEnd {
  const { rollouts } = config;
  return {
    step: {
      state: "collecting",
      experiment: parseId(`${config.run}-w${window.number}`),
      seed: BigInt(config.seed),
      rollouts,
      assigned: assignedTo(config, world, window).digest,
    },
  };
}

export async function collect(context: StageContext, at: At): Promise<StageEnd> {
  const { config, world, folder, onProgress } = context;
  const { window, state } = at;
  const { experiment, seed, assigned: expected } = window.need("collecting").step;
  const { policy, router: key } = window.need("planned").step;
  const assigned = assignedTo(config, world, window);
  const checkpoint = await checkpointOf(policy, { ...context, state });
  const router = routerFor({ config, world, checkpoint, exploration: config.exploration.collect });
  requireSame("the tasks of the window", expected, assigned.digest);
  requireSame("the router of the window", key.digest, digestRouter(router));
  const queue = join(folder, `queue-${window.number}.db`);
  const gateway = `loop-${config.run}`;
  if (existsSync(queue)) forget(context, { queue, gateway });
  const options: CollectOptions = {
    ...context,
    ...{ router, assigned, experiment, seed, queue, gateway, workers: config.workers, drain: context.signal },
    model: checkpoint === undefined ? undefined : readCheckpoint(checkpoint).model,
    onProgress: (progress) => onProgress(window.number, progress),
  };
  const { results, progress } = await world.collect(options);
  requireComplete(window.number, { results, progress, expected: config.rollouts });
  removeQueue(queue);
  const members = seal(LoopMembers, {
    ...{ run: parseId(config.run), window: window.number },
    rollouts: membersOf(results),
  });
  return {
    step: { state: "sealed", members: members.digest, rollouts: members.record.rollouts.length },
    beside: [members],
  };
}

export async function score(context: StageContext, at: At): Promise<StageEnd> {
  const { book, config, world } = context;
  const { router } = at.window.need("planned").envelope;
  const { drift } = config.freshness ?? {};
  const { batch, considered, excluded } = await cutWindow(book, {
    ...{ contents: await contentsOf(context, at), family: world.family, target: router! },
    freshness:
      drift === undefined ? "none" : { drift: { accept: drift, quarantine: drift }, unmeasured: "discarded" },
    ...{ rule: config.split, seed: BigInt(config.seed) },
  });
  const { totals } = batch.record;
  if (config.replay !== undefined)
    await growReplay(book, {
      ...{ root: config.replay, families: [world.family], contents: await contentsOf(context, at) },
    });
  return {
    step: {
      state: "scored",
      batch: batchContent(batch.record),
      ...{ rows: totals.rows, considered, rewardMean: totals.rewardMean },
      excluded: excluded.map(({ reason, artifacts }) => ({ reason: parseId(reason), rollouts: artifacts })),
    },
    records: { batch: batch.digest },
  };
}

/** A function of batch, configuration and seed: a checkpoint that a killed process left is made again, and is the same. */
export async function train(context: StageContext, at: At): Promise<StageEnd> {
  const { book, config, world, folder } = context;
  const { window, state } = at;
  const parent = await checkpointOf(servedAfter(state, window.number - 1), { ...context, state });
  const { table, floor, split } = config;
  const request = {
    ...{ policy: "router", parent, split, seed: BigInt(config.seed), family: world.family },
    ...{ batch: window.need("scored").envelope.batch, contents: await contentsOf(context, at) },
    ...(typeof floor === "object" ? { floorRisk: floor.risk, promise: { table } } : {}),
  };
  const made: { learner: Id; revision: RevisionKey; value?: number; record: Digest; rows: number }[] = [];
  for (const { learner, id: name, folder: out } of candidatesOf(config, window.number, folder)) {
    rmSync(out, { recursive: true, force: true });
    const { checkpoint, rows } = await trainPolicy(book, {
      ...{ ...request, learner: learnerOf(learner), id: name, out },
    });
    const { id, digest } = checkpoint.revision.record;
    made.push({
      ...{
        learner: parseId(learner.kind),
        revision: { id, digest },
        record: checkpoint.revision.digest,
        rows,
      },
      ...exactValue(context, out),
    });
  }
  const [{ revision, record, rows }] = made as [(typeof made)[0]];
  if (made.length === 1) return { step: { state: "trained", revision, rows }, records: { revision: record } };
  const candidates = made.map(({ record: _, rows: __, ...each }) => each);
  return {
    step: { state: "trained", revision, rows, candidates },
    records: { revision: record, candidates: made.map((each) => each.record) },
  };
}

export async function judge(context: StageContext, at: At): Promise<StageEnd> {
  const { book, config, world } = context;
  const { window, state } = at;
  const { gate, table, floor, exploration } = config;
  for (const { revision } of revisionsOf(window))
    await checkpointOf({ kind: "revision", revision }, { ...context, state });
  const released = await checkpointOf(servedAfter(state, window.number - 1), { ...context, state });
  const { baseline: against, ...rule } = gate;
  const { step, verdict } = await judgeCandidates(book, candidatesOf(config, window.number, context.folder), {
    judge: {
      ...{ contents: await contentsOf(context, at), family: world.family, order: "id" },
      ...{ table, exploration: exploration.serve, seed: BigInt(config.seed) },
      ...(typeof floor === "number" ? { floor } : {}),
    },
    gate: { ...rule, baseline: against === "released" ? (released ?? "behaviour") : against },
  });
  if (verdict === undefined) return { step };
  return {
    step: { ...step, verdict: verdictContent(verdict.record) },
    records: { verdict: verdict.digest },
  };
}

export async function conclude(context: StageContext, { state, window }: At): Promise<StageEnd> {
  const { config, world } = context;
  const { outcome } = window.need("judged").step;
  const passed = outcome === "pass";
  const revision = window.need("judged").step.passed ?? window.need("trained").step.revision;
  const policy: LoopPolicy = passed ? { kind: "revision", revision } : servedAfter(state, window.number - 1);
  const checkpoint = await checkpointOf(policy, { ...context, state });
  const router = routerFor({ config, world, checkpoint, exploration: config.exploration.serve });
  const facts = {
    router: digestRouter(router),
    ...(world.exact === undefined ? {} : { value: world.exact.value(router) }),
  };
  return {
    step: passed ? { state: "released", revision, ...facts } : { state: "kept", policy, ...facts },
  };
}

/** What a checkpoint would be worth if it served, in worlds that know. */
function exactValue({ config, world }: StageContext, checkpoint: string): { value?: number } {
  if (world.exact === undefined) return {};
  const router = routerFor({ config, world, checkpoint, exploration: config.exploration.serve });
  return { value: world.exact.value(router) };
}

function assignedTo(config: LoopConfig, world: LoopWorld, window: LoopWindow) {
  const { rollouts, samples, seed } = config;
  const rng = rngFrom(seed).split(`window ${window.number}`);
  return world.assign(drawRows(world, { count: rollouts / samples, rng }), samples);
}

/** The rollouts that the window learns from and is judged by. */
function contentsOf({ book, config }: StageContext, { state, window }: At): Promise<ReadonlySet<Digest>> {
  return collectedIn(book, sourcesOf(config, state, window));
}

/** Half of what a killed process did is no part of the window. Its claims would be held until they expire; and a simulated
 *  rollout whose first calls stand in the journal would be recorded under another name. Sealed rollouts stay. */
function forget({ book }: StageContext, { queue, gateway }: { queue: string; gateway: string }): void {
  rmSync(join(book.root, "journal", encodeURIComponent(gateway)), { recursive: true, force: true });
  removeQueue(queue);
}

function removeQueue(queue: string): void {
  for (const suffix of ["-wal", "-shm", ""]) rmSync(`${queue}${suffix}`, { force: true });
}

function membersOf(results: readonly RolloutResult[]): LoopMembers["rollouts"] {
  return results
    .flatMap((each) =>
      each.state === "sealed" ? [{ id: parseId(each.rolloutId), content: each.content }] : [],
    )
    .sort((a, b) => compareUtf8(a.id, b.id));
}

/** A window is sealed when all of it is: which rollouts are missing would depend on time. */
function requireComplete(
  window: number,
  {
    results,
    progress,
    expected,
  }: { results: readonly RolloutResult[]; progress: Progress; expected: number },
): void {
  const sealed = results.filter(({ state }) => state === "sealed").length;
  if (sealed === expected) return;
  const dead = results.find((each) => each.state === "dead");
  const why =
    dead?.state === "dead" ? ` ${plural(progress.dead, "rollout")} set aside, first: ${dead.reason}.` : "";
  throw new RollbookError(
    "window-incomplete",
    { window, sealed, expected, dead: progress.dead },
    `window ${window}: ${sealed} of ${plural(expected, "rollout")} sealed.${why} Continue with \`rollbook run resume\`.`,
  );
}

function requireSame(what: string, expected: Digest, actual: Digest): void {
  if (expected === actual) return;
  throw new RollbookError(
    "loop-changed",
    { what, expected, actual },
    `${what} is ${actual}, the run began with ${expected}. Restore the files it was started with, or start another run.`,
  );
}

/** Of a verdict without its times, and without records that hold times: what was found, and by which rule. */
function verdictContent(verdict: GateVerdict): Digest {
  const { atMs: _, data, candidates, ...rest } = verdict;
  const { digest: _rows, manifest: _manifest, ledger: _ledger, ...counts } = data;
  const judged = candidates.map(({ router, ...each }) => {
    const { promise: _promise, ...facts } = router;
    return { ...each, router: facts };
  });
  const wire = encodeWire(GateVerdict, { ...rest, data: counts, candidates: judged } as GateVerdict);
  return digestJson("rollbook.verdict-content.v1", JSON.parse(canonicalize(wire as Json)) as Json);
}
