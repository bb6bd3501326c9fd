/** Implements the stages of a window. Each reads the book, does one thing, and returns the next transition. An
 *  interrupted stage is repeated from its beginning and reuses the records that already exist. */
import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { canonicalize, type Digest, digestJson, type Id, type Json, parseId } from "../base/index.ts";
import { cutWindow } from "../book/loop/index.ts";
import { growReplay } from "../book/replay/index.ts";
import { trainPolicy } from "../book/train/index.ts";
import { KeptThread } from "../collect/index.ts";
import { encodeWire, GateVerdict, type LoopPolicy, type RevisionKey } from "../contract/index.ts";
import { digestRouter } from "../policy/index.ts";
import { baselineFolder, planPolicies } from "./book-release.ts";
import { judgeCandidates, revisionsOf, windowCandidates } from "./candidates.ts";
import { cutOrExplain } from "./empty-window.ts";
import { keptAfter, parentOf, type RunState, servedAfter } from "./fold.ts";
import { learnerOf } from "./learner.ts";
import { checkpointOf, restoreServed, routerFor, routerKey, routerRevision } from "./routers.ts";
import { judgedDiscount, noteChains } from "./run-warnings.ts";
import {
  assignedTo,
  contentsOf,
  forget,
  type RunContext,
  removeQueue,
  requireSame,
  type StageEnd,
  scoredEnd,
  sealMembers,
  stagesOf,
  type WindowAt,
  type WindowStages,
} from "./stage-parts.ts";
import { type CollectOptions, type LoopWorld, policyFamily } from "./world/index.ts";

interface StageContext extends RunContext {
  readonly world: LoopWorld;
  /** The sealing thread, kept from window to window. */
  readonly keptThread: KeptThread;
}

/** Stages of windows that learn to choose among candidates. */
export function routerStages(context: Omit<StageContext, "keptThread">): WindowStages {
  const keptThread = new KeptThread();
  const stages = { plan, collect, score, train, judge, conclude };
  return stagesOf({ ...context, keptThread }, stages, () => keptThread.close());
}

/** `policy` is the last release of the run. */
async function plan(
  context: StageContext,
  { state, policy: own, releases }: { state: RunState; policy: LoopPolicy; releases: number },
): Promise<StageEnd> {
  const { book, config, world } = context;
  const { policy, baseline: served } = await planPolicies(context, { state, own });
  const collects = policy.kind === "revision" && policy.revision === served?.revision;
  const checkpoint = collects
    ? await restoreServed(context, served)
    : await checkpointOf(policy, { ...context, state });
  const router = routerFor({ config, world, checkpoint, exploration: config.exploration.collect });
  const key = routerKey(router);
  const revision = routerRevision(world.family, key, { releases, atMs: book.clock.nowMs() });
  const known = (await book.index())
    .named(key.id)
    .find(({ kind, fields }) => kind === revision.kind && fields.number !== undefined);
  return {
    step: {
      ...{ state: "planned", config: config.digest, world: world.digest, policy, router: key, releases },
      ...(served === undefined ? {} : { baseline: served.revision }),
      ...(world.exact === undefined ? {} : { value: world.exact.value(router), best: world.exact.best }),
    },
    records: {
      router: known?.digest ?? revision.digest,
      ...(served === undefined ? {} : { baseline: served.record }),
    },
    beside: known === undefined ? [revision] : [],
  };
}

async function collect(context: StageContext, at: WindowAt): Promise<StageEnd> {
  const { config, world, folder, onProgress } = context;
  const { window, state } = at;
  const { experiment, seed, assigned: expected } = window.need("collecting").step;
  const { policy, router: key } = window.need("planned").step;
  const assigned = assignedTo(config, world, window);
  const checkpoint = await checkpointOf(policy, { ...context, state });
  const router = routerFor({ config, world, checkpoint, exploration: config.exploration.collect });
  requireSame("the tasks of the window", expected, assigned.digest);
  requireSame("the router of the window", key.digest, digestRouter(router));
  const own = join(folder, `queue-${window.number}.db`);
  const gateway = `loop-${config.run}`;
  if (existsSync(own)) forget(context, { queue: own, gateway });
  // A stop lets running rollouts end. If it were passed as `signal`, they would be cancelled and run again under a
  // second name.
  const { signal: drain, ...place } = context;
  const options: CollectOptions = {
    ...place,
    ...{ router, assigned, experiment, seed, gateway, workers: config.workers, drain },
    // A queue on a server is not removed: other machines use it, and claims of a killed loop expire.
    queue: config.queue ?? own,
    onProgress: (progress) => onProgress(window.number, progress),
  };
  const { results, progress } = await world.collect(options);
  const end = sealMembers(context, { window: window.number, results, progress });
  removeQueue(own);
  return end;
}

async function score(context: StageContext, at: WindowAt): Promise<StageEnd> {
  const { book, config, world } = context;
  const { router } = at.window.need("planned").envelope;
  const { drift } = config.freshness ?? {};
  const contents = await contentsOf(context, at);
  const { batch, chains, ...facts } = await cutOrExplain(context, at, () =>
    cutWindow(book, {
      ...{ contents, family: world.family, target: router! },
      freshness:
        drift === undefined
          ? "none"
          : { drift: { accept: drift, quarantine: drift }, unmeasured: "discarded" },
      ...{ rule: config.split, seed: BigInt(config.seed) },
    }),
  );
  // Logged once per run: an agent makes the same kind of calls in every window.
  if (at.window.number === 1) noteChains(context, chains);
  if (config.replay !== undefined)
    await growReplay(book, {
      ...{ root: config.replay, families: [world.family], contents },
    });
  return scoredEnd(batch, facts);
}

/** Training is a function of batch, configuration and seed. A checkpoint that a killed process left is made again, with
 *  the same bytes. */
async function train(context: StageContext, at: WindowAt): Promise<StageEnd> {
  const { book, config, world, folder } = context;
  const { window, state } = at;
  const parent = await checkpointOf(parentOf(state, window), { ...context, state });
  const { table, floor, split } = config;
  const request = {
    ...{ policy: policyFamily(config.world), parent, split, seed: BigInt(config.seed), family: world.family },
    ...{ batch: window.need("scored").envelope.batch, contents: await contentsOf(context, at) },
    discount: config.discount,
    ...(typeof floor === "object" ? { floorRisk: floor.risk, promise: { table } } : {}),
  };
  const made: { learner: Id; revision: RevisionKey; value?: number; record: Digest; rows: number }[] = [];
  for (const { learner, id: name, folder: out } of windowCandidates(config, window.number, folder)) {
    rmSync(out, { recursive: true, force: true });
    const { checkpoint, rows } = await trainPolicy(book, {
      ...{ ...request, learner: learnerOf(learner), id: name, out },
    });
    const { id, digest } = checkpoint.revision.record;
    made.push({
      learner: parseId(learner.kind),
      revision: { id, digest },
      record: checkpoint.revision.digest,
      rows,
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

async function judge(context: StageContext, at: WindowAt): Promise<StageEnd> {
  const { book, config, world } = context;
  const { window, state } = at;
  const { gate, table, floor, exploration } = config;
  for (const { revision } of revisionsOf(window))
    await checkpointOf({ kind: "revision", revision }, { ...context, state });
  const released =
    (await baselineFolder(context, window)) ??
    (await checkpointOf(servedAfter(state, window.number - 1), { ...context, state }));
  const { baseline: against, ...rule } = gate;
  const { step, verdict } = await judgeCandidates(
    book,
    windowCandidates(config, window.number, context.folder),
    {
      judge: {
        ...{ contents: await contentsOf(context, at), family: world.family, order: "id" },
        ...{ table, exploration: exploration.serve, seed: BigInt(config.seed) },
        discount: judgedDiscount(config),
        ...(typeof floor === "number" ? { floor } : {}),
      },
      gate: { ...rule, baseline: against === "released" ? (released ?? "behaviour") : against },
    },
  );
  if (verdict === undefined) return { step };
  return {
    step: { ...step, verdict: verdictContent(verdict.record) },
    records: { verdict: verdict.digest },
  };
}

async function conclude(context: StageContext, { state, window }: WindowAt): Promise<StageEnd> {
  const { config, world } = context;
  const { outcome } = window.need("judged").step;
  const passed = outcome === "pass";
  const revision = window.need("judged").step.passed ?? window.need("trained").step.revision;
  const policy: LoopPolicy = passed ? { kind: "revision", revision } : keptAfter(state, window);
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

/** Exact value of a checkpoint if it served; empty if the world does not know it. */
function exactValue({ config, world }: StageContext, checkpoint: string): { value?: number } {
  if (world.exact === undefined) return {};
  const router = routerFor({ config, world, checkpoint, exploration: config.exploration.serve });
  return { value: world.exact.value(router) };
}

/** Digest of a verdict without times and without records that hold times: only the findings and the rule. */
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
