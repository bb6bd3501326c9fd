/** Defines the parts that the stages of every kind of window share. */
import { rmSync } from "node:fs";
import { join } from "node:path";
import {
  asSentence,
  compareUtf8,
  type Digest,
  parseId,
  plural,
  RollbookError,
  rngFrom,
} from "../base/index.ts";
import type { Identity } from "../book/collect/index.ts";
import type { TransitionRecords } from "../book/loop/index.ts";
import type { BookOnDisk } from "../book/open/index.ts";
import type { Progress, RolloutResult } from "../collect/rollout/index.ts";
import {
  batchContent,
  LoopMembers,
  type LoopPolicy,
  type LoopTransition,
  type Sealed,
  type SealedBlob,
  seal,
  type TrainerBatch,
  type WindowState,
} from "../contract/index.ts";
import type { LoopConfig } from "./config.ts";
import type { LoopWindow, RunState } from "./fold.ts";
import { collectedIn, sourcesOf } from "./members.ts";
import { type Assigned, drawRows } from "./world/index.ts";

/** Data that every stage of a run has. */
export interface RunContext {
  readonly book: BookOnDisk;
  readonly config: LoopConfig;
  /** Folder of the run's operational files: checkpoints and queues, which can be made again. The state of an optimizer
   *  is only here. */
  readonly folder: string;
  readonly identity: Identity;
  readonly signal: AbortSignal;
  readonly onProgress: (window: number, progress: Progress) => void;
  readonly log: (line: string) => void;
}

/** Result of a stage: the step of the transition, and the records that enter the book with it. */
export interface StageEnd {
  readonly step: LoopTransition["step"];
  readonly records?: TransitionRecords;
  readonly beside?: readonly SealedBlob[];
}

export interface WindowAt {
  readonly state: RunState;
  readonly window: LoopWindow;
}

/** Stages of one kind of window, by the state of the window. */
export interface WindowStages
  extends Readonly<
    Record<Exclude<WindowState, "released" | "kept">, (at: WindowAt) => StageEnd | Promise<StageEnd>>
  > {
  /** `policy` collects. `releases` is the number of releases before this window. */
  plan(at: { state: RunState; policy: LoopPolicy; releases: number }): Promise<StageEnd>;
  /** Digest of the world in which windows are planned now. */
  readonly world: Digest;
  /** Ends processes and servers that were started for the run. */
  close(): Promise<void>;
}

/** Stage functions of a kind of window. The assignment of tasks is the same for all kinds. */
type StageOf<C, At = WindowAt> = (context: C, at: At) => Promise<StageEnd>;
interface StageFunctions<C> {
  readonly plan: StageOf<C, Parameters<WindowStages["plan"]>[0]>;
  readonly collect: StageOf<C>;
  readonly score: StageOf<C>;
  readonly train: StageOf<C>;
  readonly judge: StageOf<C>;
  readonly conclude: StageOf<C>;
}

export function stagesOf<
  C extends RunContext & { readonly world: AssignedWorld & { readonly digest: WindowStages["world"] } },
>(
  context: C,
  { plan, collect, score, train, judge, conclude }: StageFunctions<C>,
  close: WindowStages["close"] = async () => {},
): WindowStages {
  return {
    plan: (at) => plan(context, at),
    planned: ({ window }) => assignWindow(context.config, context.world, window),
    collecting: (at) => collect(context, at),
    sealed: (at) => score(context, at),
    scored: (at) => train(context, at),
    trained: (at) => judge(context, at),
    judged: (at) => conclude(context, at),
    world: context.world.digest,
    close,
  };
}

interface AssignedWorld {
  readonly rows: number;
  assign(rows: readonly number[], samples: number): Assigned;
}

export function assignedTo(config: LoopConfig, world: AssignedWorld, window: LoopWindow): Assigned {
  const { rollouts, samples, seed, options } = config;
  const rng = rngFrom(seed).split(`window ${window.number}`);
  return world.assign(drawRows(world, { count: rollouts / samples, rng, options }), samples);
}

/** Fixes the members of the window before any rollout runs. */
function assignWindow(config: LoopConfig, world: AssignedWorld, window: LoopWindow): StageEnd {
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

/** Ends the collecting stage: a window is sealed only if every rollout is sealed. */
export function sealMembers(
  { config, log }: RunContext,
  { window, results, progress }: { window: number; results: readonly RolloutResult[]; progress: Progress },
): StageEnd {
  requireComplete(window, { results, progress, config });
  const failed = Object.entries(progress.failed).filter(([owner]) => owner !== "agent");
  if (failed.length > 0)
    log(
      `window ${window}: of ${plural(config.rollouts, "rollout")}, ${failed.map(([owner, count]) => `${count} failed by the ${owner}`).join(", ")}. They stay in the book; no batch takes them, and \`rollbook run resume\` does not run them again.`,
    );
  const members = seal(LoopMembers, {
    ...{ run: parseId(config.run), window },
    rollouts: membersOf(results),
  });
  return {
    step: { state: "sealed", members: members.digest, rollouts: members.record.rollouts.length },
    beside: [members],
  };
}

/** Ends the scoring stage with the content of the batch and the exclusions. */
export function scoredEnd(
  batch: Sealed<TrainerBatch>,
  {
    considered,
    excluded,
  }: {
    considered: number;
    excluded: readonly { readonly reason: string; readonly artifacts: number }[];
  },
): StageEnd {
  const { rows, rewardMean } = batch.record.totals;
  return {
    step: {
      ...{ state: "scored", batch: batchContent(batch.record), rows, considered, rewardMean },
      excluded: excluded.map(({ reason, artifacts }) => ({ reason: parseId(reason), rollouts: artifacts })),
    },
    records: { batch: batch.digest },
  };
}

/** Rollouts that the window learns from and is judged by. */
export function contentsOf(
  { book, config }: RunContext,
  { state, window }: WindowAt,
): Promise<ReadonlySet<Digest>> {
  return collectedIn(book, sourcesOf(config, state, window));
}

/** Removes the unfinished work of a killed process; it is no part of the window. Its claims would otherwise be held
 *  until they expire. A simulated rollout with calls in the journal would be recorded under another name. Sealed
 *  rollouts stay. */
export function forget(context: RunContext, { queue, gateway }: { queue: string; gateway: string }): void {
  forgetJournal(context, gateway);
  removeQueue(queue);
}

export function forgetJournal({ book }: RunContext, gateway: string): void {
  rmSync(join(book.root, "journal", encodeURIComponent(gateway)), { recursive: true, force: true });
}

export function removeQueue(queue: string): void {
  for (const suffix of ["-wal", "-shm", ""]) rmSync(`${queue}${suffix}`, { force: true });
}

function membersOf(results: readonly RolloutResult[]): LoopMembers["rollouts"] {
  return results
    .flatMap((each) =>
      each.state === "sealed" ? [{ id: parseId(each.rolloutId), content: each.content }] : [],
    )
    .sort((a, b) => compareUtf8(a.id, b.id));
}

/** A window is sealed only when it is complete. Otherwise the set of missing rollouts would depend on time. */
function requireComplete(
  window: number,
  {
    results,
    progress,
    config,
  }: { results: readonly RolloutResult[]; progress: Progress; config: LoopConfig },
): void {
  const expected = config.rollouts;
  const sealed = results.filter(({ state }) => state === "sealed").length;
  if (sealed === expected) return;
  const dead = results.find((each) => each.state === "dead");
  const why =
    dead?.state === "dead"
      ? ` ${plural(progress.dead, "rollout")} set aside, first: ${asSentence(dead.reason)}`
      : "";
  throw new RollbookError(
    "window-incomplete",
    { window, sealed, expected, dead: progress.dead },
    `window ${window}: ${sealed} of ${plural(expected, "rollout")} sealed.${why} Continue with \`rollbook run resume ${config.options}\`.`,
  );
}

export function requireSame(what: string, expected: Digest, actual: Digest): void {
  if (expected === actual) return;
  throw new RollbookError(
    "loop-changed",
    { what, expected, actual },
    `${what} is ${actual}, the run began with ${expected}. Restore the files it was started with, or start another run.`,
  );
}
