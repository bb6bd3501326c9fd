/** Finds the policy that gateways on a book serve now, if it is not the last release of the run. New policies must not
 *  be worse than it.
 *  In: a run. Out: that policy with its record, or a refusal if it cannot be compared in this run. */
import { type Digest, given, RollbookError } from "../base/index.ts";
import { checkpointOf, isTakenBack, newestRelease } from "../book/serve/index.ts";
import { type LoopPolicy, PolicyRevision, type RevisionKey } from "../contract/index.ts";
import { splitOf } from "../learn/index.ts";
import type { PolicyModel } from "../policy/index.ts";
import { revisionsOf } from "./candidates.ts";
import type { LoopConfig } from "./config.ts";
import { type LoopWindow, type RunState, servedAfter } from "./fold.ts";
import { restoreServed } from "./routers.ts";
import type { RunContext } from "./stage-parts.ts";
import { type LoopWorld, policyFamily } from "./world/index.ts";

interface BookRelease {
  readonly revision: RevisionKey;
  /** Digest of the record of the revision. */
  readonly record: Digest;
}

/** Undefined if the book serves no release, or the same policy as the run. After a rollback, or a manual gate, the book
 *  may serve another policy of the run. */
async function otherRelease(
  { book, config, log }: RunContext,
  state: RunState,
): Promise<BookRelease | undefined> {
  const released = policyFamily(config.world);
  const revision = await newestRelease(book, released);
  const own = servedAfter(state, state.windows.length);
  if (revision === undefined) {
    if (own.kind === "revision" && config.gate.baseline === "released")
      log(
        `warning: ${own.revision.id} was rolled back, or no trusted key signed its release, and this book serves no release. The run ${config.run} compares with ${own.revision.id} nevertheless.`,
      );
    return undefined;
  }
  if (own.kind === "revision" && own.revision.digest === revision.digest) return undefined;
  // A window that has not ended may already have passed the gate: the run serves its policy next.
  const open = state.windows.filter(({ final }) => final === undefined).flatMap(revisionsOf);
  if (open.some((each) => each.revision.digest === revision.digest)) return undefined;
  const known = (await book.index())
    .ofKind(PolicyRevision.kind)
    .filter(({ family, fields }) => family === released && fields.digest === revision.digest);
  const named = known.find(({ id }) => id === revision.id) ?? known[0]!;
  return { revision, record: named.digest };
}

interface PlannedPolicies {
  /** Policy that the window collects with. */
  readonly policy: LoopPolicy;
  /** Policy that the window is judged against, if it is not the last release of the run. */
  readonly baseline?: BookRelease;
}

/** Chooses, before a window is planned, the policy it collects with and the baseline it is judged against. The first
 *  window collects with the configured behaviour, each later one with the policy that the book serves. `own` is the
 *  last release of the run itself. */
export async function planPolicies(
  context: RunContext & { readonly world: Pick<LoopWorld, "models"> },
  { state, own }: { state: RunState; own: LoopPolicy },
): Promise<PlannedPolicies> {
  const { book, log } = context;
  const baseline = await planBaseline(context, state);
  if (baseline !== undefined && state.windows.length > 0)
    return { policy: { kind: "revision", revision: baseline.revision }, baseline };
  if (own.kind === "behaviour" || !(await isTakenBack(book, own.revision.digest)))
    return { policy: own, ...given({ baseline }) };
  log(`warning: ${own.revision.id} was rolled back. The window collects with the configured behaviour.`);
  return { policy: { kind: "behaviour" }, ...given({ baseline }) };
}

/** A run that cannot compare with the served policy does not begin. A run that has begun continues, with a warning in
 *  the log. */
async function planBaseline(
  context: RunContext & { readonly world: Pick<LoopWorld, "models"> },
  state: RunState,
): Promise<BookRelease | undefined> {
  const { book, config, log, world } = context;
  const served = await otherRelease(context, state);
  if (served === undefined) return undefined;
  const { id } = served.revision;
  const first = state.windows.length === 0;
  const replaces = `A policy that the run ${config.run} releases replaces ${id} in gateways on this book.`;
  if (config.gate.baseline !== "released") {
    if (first)
      log(
        `warning: this book serves ${id}, and the run ${config.run} does not compare with it (gate.baseline: ${config.gate.baseline}). ${replaces} Remove gate.baseline to compare, or name another book under book: or with --book.`,
      );
    return undefined;
  }
  const checkpoint = await checkpointOf(book, served.revision, { family: policyFamily(config.world) });
  const problem =
    checkpoint === undefined ? "its checkpoint is not in the book" : problemOf(checkpoint.model, context);
  if (problem === undefined) {
    if (first)
      log(
        `this book serves ${id}. The run ${config.run} releases a policy only if it is not worse than ${id}.`,
      );
    return served;
  }
  if (first) throw notComparable(id, { problem, replaces, models: world.models });
  log(
    `warning: this book serves ${id} now, and the run ${config.run} cannot compare with it: ${problem}. ${replaces}`,
  );
  return undefined;
}

/** Folder of the checkpoint that a window is judged against; undefined if it is the run's own release or start. */
export async function baselineFolder(
  { book, folder }: RunContext,
  window: LoopWindow,
): Promise<string | undefined> {
  const { step, envelope } = window.need("planned");
  if (step.baseline === undefined || envelope.baseline === undefined) return undefined;
  return restoreServed({ book, folder }, { revision: step.baseline, record: envelope.baseline });
}

function problemOf(
  model: PolicyModel,
  { config, world }: { readonly config: LoopConfig; readonly world: Pick<LoopWorld, "models"> },
): string | undefined {
  const split = splitOf(model, "the released policy");
  if (!world.models.some((name) => model.arms.includes(name)))
    return `it chooses among ${model.arms.join(", ")}, this run among ${world.models.join(", ")}`;
  if (split === undefined) return "it does not say which rows it has learned from";
  if (split.rule.unit !== config.split.unit)
    return `its rows were split by ${split.rule.unit}, those of this run by ${config.split.unit}`;
  return "embedding" in model.spec && model.spec.embedding !== undefined
    ? "it reads embeddings, which a loop does not have"
    : undefined;
}

function notComparable(
  id: string,
  { problem, replaces, models }: { problem: string; replaces: string; models: readonly string[] },
): RollbookError {
  return new RollbookError(
    "other-release",
    { released: id, models },
    `this book serves ${id}, and a run that cannot compare with it must not replace it: ${problem}. ${replaces} Name another book under book: or with --book, or state gate.baseline: behaviour to release without that comparison.`,
  );
}
