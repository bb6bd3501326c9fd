/** Implements the stages of a window that trains a language model on its tokens: serve revision k, roll out, cut a
 *  token batch, train one step in Python, release k + 1. The serving revision takes the place of the router in other
 *  windows. An interrupted stage is repeated from its beginning and reuses the records that already exist. */
import { createHash } from "node:crypto";
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { type Digest, digestJson, given, RollbookError } from "../../base/index.ts";
import { cutBatch, exportBatch, showBatch } from "../../book/batches/index.ts";
import { sealWeights } from "../../book/train/index.ts";
import type { LoopPolicy, PolicyRevision, RevisionKey, Sealed } from "../../contract/index.ts";
import { servedAfter } from "../fold.ts";
import {
  assignedTo,
  contentsOf,
  forgetJournal,
  type RunContext,
  requireSame,
  type StageEnd,
  scoredEnd,
  sealMembers,
  stagesOf,
  type WindowAt,
  type WindowStages,
} from "../stage-parts.ts";
import { type TokenWorldConfig, trainerOptions } from "../token-config.ts";
import { readRevisionRecord, readWeights, restoreFolder } from "./checkpoints.ts";
import type { ServedRevision } from "./model-server.ts";
import { openTokenWorld, type TokenInputs, type TokenWorld } from "./token-world.ts";
import { describeReport } from "./training-report.ts";

interface TokenContext extends RunContext {
  readonly world: TokenWorld;
  readonly settings: TokenWorldConfig;
}

export function tokenStages(run: RunContext, settings: TokenWorldConfig, inputs: TokenInputs): WindowStages {
  const context: TokenContext = { ...run, settings, world: openTokenWorld(settings, inputs, run) };
  return stagesOf(context, { plan, collect, score, train, judge, conclude }, () => context.world.close());
}

async function plan(
  context: TokenContext,
  { state, policy, releases }: Parameters<WindowStages["plan"]>[0],
): Promise<StageEnd> {
  const { config, world } = context;
  const revision = await revisionOf(context, policy, state);
  const { id, digest } = revision.record;
  return {
    step: {
      ...{ state: "planned", config: config.digest, world: world.digest, policy, releases },
      router: { id, digest },
    },
    records: { router: revision.digest },
  };
}

async function collect(context: TokenContext, { window }: WindowAt): Promise<StageEnd> {
  const { config, world } = context;
  const { experiment, seed, assigned: expected } = window.need("collecting").step;
  const revision = await readRevisionRecord(context.book, window.need("planned").envelope.router!);
  const assigned = assignedTo(config, world, window);
  requireSame("the tasks of the window", expected, assigned.digest);
  const gateway = `loop-${config.run}-w${window.number}`;
  forgetJournal(context, gateway);
  const { results, progress } = await world.collect({
    ...{ revision: await served(context, revision.record), gateway, experiment, seed },
    ...{ rows: assigned.rows.map((row) => world.tasks[row]!), samples: assigned.samples },
    onProgress: (now) => context.onProgress(window.number, now),
  });
  return sealMembers(context, { window: window.number, results, progress });
}

/** The batch is meant to improve the serving revision. An asynchronous window may have collected with an older one. */
async function score(context: TokenContext, at: WindowAt): Promise<StageEnd> {
  const { book, config, settings, world } = context;
  const target = await revisionOf(context, servedAfter(at.state, at.window.number - 1), at.state);
  const drift = config.freshness?.drift ?? (config.mode === "asynchronous" ? config.maxDrift : 0);
  const learner = config.tokenLearner!;
  const batch = await cutBatch(book, {
    ...{ contents: await contentsOf(context, at), target: target.digest },
    ...{ level: "token", family: settings.family },
    ...{ logprobKind: "sampling", tokenizer: world.tokenizer, seed: BigInt(config.seed) },
    readRecord: (type, digest) => world.records.read(type, digest),
    advantage: learner.kind === "rloo" ? "leave-one-out" : "mean-std",
    freshness: { drift: { accept: drift, quarantine: drift }, unmeasured: "discarded" },
  });
  const { ledger } = await showBatch(book, batch.digest);
  return scoredEnd(batch, { considered: ledger.considered.artifacts, excluded: ledger.reasons });
}

async function train(context: TokenContext, { state, window }: WindowAt): Promise<StageEnd> {
  const { book, config, settings, folder, world, log } = context;
  const parent = await revisionOf(context, servedAfter(state, window.number - 1), state);
  const batch = window.need("scored").envelope.batch!;
  const out = checkpointFolder(folder, window.number);
  const path = join(folder, `batch-${window.number}.safetensors`);
  rmSync(path, { force: true });
  await exportBatch(book, batch, { format: "safetensors", out: path });
  const options = trainerOptions(config.tokenLearner!, {
    ...{
      temperature: settings.sampling.temperature,
      seed: config.seed + window.number,
      window: window.number,
    },
  });
  const { rows: _, ...kept } = options;
  const report = await world.train({
    batch: { path, digest: batch, sha256: createHash("sha256").update(readFileSync(path)).digest("hex") },
    ...{ family: settings.family, parent: await served(context, parent.record), out, options },
    sources: await olderSources(context, batch, parent.record),
  });
  rmSync(path, { force: true });
  // Only the newest optimizer state is continued from; an asynchronous window may still be one behind.
  const spent = join(checkpointFolder(folder, window.number - config.maxDrift - 1), "optimizer.safetensors");
  rmSync(spent, { force: true });
  log(`window ${window.number}: ${describeReport(report)}`);
  const name = `${config.run}-w${window.number}`;
  // The server loads the weights while they are sealed. It refuses weights of another digest.
  if (window.number < config.windows) world.prepare({ id: name, digest: report.digest, folder: out });
  const revision = await sealWeights(book, {
    ...{ weights: readWeights(out), family: settings.family, id: name, parent },
    batches: [batch],
    config: digestJson("rollbook.training-config.v1", kept),
    seed: BigInt(config.seed),
    ...given({ steps: report.steps }),
  });
  const { id, digest } = revision.record;
  requireSame("the weights that the trainer wrote", report.digest, digest);
  return {
    step: { state: "trained", revision: { id, digest }, rows: report.rows },
    records: { revision: revision.digest },
  };
}

/** Answers held-out tasks with the new revision. Without held-out tasks, it is released after the trainer's own
 *  checks. */
async function judge(context: TokenContext, { state, window }: WindowAt): Promise<StageEnd> {
  const { config, settings, world } = context;
  const { heldOut } = settings;
  const isDue =
    heldOut !== undefined && (window.number % heldOut.every === 0 || window.number === config.windows);
  if (!isDue) return { step: { state: "judged", outcome: "pass", reasons: [] } };
  const revision = await readRevisionRecord(context.book, window.need("trained").envelope.revision!);
  const gateway = `loop-${config.run}-h${window.number}`;
  forgetJournal(context, gateway);
  const { results } = await world.collect({
    revision: await served(context, revision.record),
    gateway,
    seed: BigInt(config.seed),
    samples: 1,
    ...{ rows: world.heldOut.slice(0, heldOut.rollouts), experiment: `${config.run}-h${window.number}` },
    onProgress: (now) => context.onProgress(window.number, now),
  });
  const rewards = results.flatMap((each) =>
    each.state === "sealed" && each.reward !== null ? [each.reward] : [],
  );
  const estimate = meanOf(rewards);
  const before = state.windows
    .filter(({ number }) => number < window.number)
    .map((each) => each.at("judged")?.step.estimate?.value ?? Number.NEGATIVE_INFINITY);
  const best = Math.max(Number.NEGATIVE_INFINITY, ...before);
  const fell = heldOut.drop !== undefined && estimate.value < best - heldOut.drop;
  return {
    step: {
      ...{ state: "judged", estimate, outcome: fell ? "refuse" : "pass" },
      reasons: fell
        ? [`held-out mean ${estimate.value.toFixed(4)} is more than ${heldOut.drop} below ${best.toFixed(4)}`]
        : [],
    },
  };
}

async function conclude(_context: TokenContext, { state, window }: WindowAt): Promise<StageEnd> {
  const { revision } = window.need("trained").step;
  if (window.need("judged").step.outcome === "pass")
    return { step: { state: "released", revision, router: revision.digest } };
  const policy = servedAfter(state, window.number - 1);
  const router = policy.kind === "revision" ? policy.revision : window.need("planned").step.router;
  return { step: { state: "kept", policy, router: router.digest } };
}

/** Record of a policy of the run; for the behaviour, the checkpoint that the run begins with. */
async function revisionOf(
  { book, config, settings, world }: TokenContext,
  policy: LoopPolicy,
  state: WindowAt["state"],
): Promise<Sealed<PolicyRevision>> {
  if (policy.kind === "behaviour")
    return sealWeights(book, { weights: world.weights, family: settings.family, id: `${config.run}-base` });
  const made = state.windows.find((each) => each.at("trained")?.step.revision.id === policy.revision.id);
  if (made !== undefined) return readRevisionRecord(book, made.need("trained").envelope.revision!);
  throw new RollbookError(
    "loop-gap",
    { revision: policy.revision.digest },
    `no window of the run trained ${policy.revision.id}. Restore the book from a copy.`,
  );
}

/** Folder of the checkpoint of a revision, for the server and the trainer. */
async function served(
  { book, config, settings, folder, log }: TokenContext,
  revision: RevisionKey,
): Promise<ServedRevision> {
  const { id, digest } = revision;
  const number = /-w(\d+)$/.exec(id)?.[1];
  if (id === `${config.run}-base` || number === undefined) return { id, digest, folder: settings.model };
  const at = checkpointFolder(folder, Number(number));
  if (await restoreFolder(book, revision, { folder: at, base: settings.model }))
    log(
      `${at} was missing: its weights were written again from the book. The book has no state of the optimizer, so a step from these weights begins with a new one.`,
    );
  return { id, digest, folder: at };
}

/** Revisions before the parent that sampled rows of the batch: the trainer also recomputes their log-probabilities. */
async function olderSources(
  context: TokenContext,
  batch: Digest,
  { digest: own }: PolicyRevision,
): Promise<ServedRevision[]> {
  const { lineage } = await showBatch(context.book, batch);
  const older = lineage.sources.filter(({ digest }) => digest !== own);
  return Promise.all(older.map((each) => served(context, each)));
}

/** Mean with the normal interval at 95 %. */
function meanOf(rewards: readonly number[]) {
  const value = rewards.reduce((sum, each) => sum + each, 0) / Math.max(1, rewards.length);
  const variance =
    rewards.reduce((sum, each) => sum + (each - value) ** 2, 0) / Math.max(1, rewards.length - 1);
  const half = 1.96 * Math.sqrt(variance / Math.max(1, rewards.length));
  return { value, low: value - half, high: value + half, level: 0.95 };
}

function checkpointFolder(folder: string, window: number): string {
  return join(folder, `window-${window}`);
}
