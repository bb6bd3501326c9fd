/** Loads what is to serve: reads files and the book's releases, verifies them, and builds the router aside.
 *  In: a configuration, where releases are found. Out: the router, or the reason the learned policy may not serve. A table
 *  that cannot be read throws: without one there is nothing to fall back to. */
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { type Digest, given, parseJson, RollbookError, reasonOf, short } from "../base/index.ts";
import { GateVerdict, openRecord, type RevisionKey, seal } from "../contract/index.ts";
import {
  type Checkpoint,
  type DecisionCandidate,
  type FeatureSpec,
  parseFeatureSpec,
  parseStaticTable,
  type Router,
  readCheckpoint,
  requireSpec,
  type StaticTable,
} from "../policy/index.ts";
import { readText } from "../store/index.ts";
import { declaredCandidates, declareWith } from "./candidates.ts";
import { constraintsOf, DEFAULT_EXPLORATION, type RouterConfig } from "./config.ts";
import {
  distrustOf,
  findReleasedRouter,
  isPolicyTakenBack,
  type ReleaseHistory,
  releasedRevisionsOf,
  takenBack,
} from "./released-routers.ts";
import { requireFit, routerAround, type Served, serve, serveStatic, tableFor } from "./served.ts";

/** What a book knows of released policies. */
export interface PolicyReleases {
  standing(): Promise<ReleaseHistory>;
  /** The checkpoint of a revision; undefined where it is of another family or the book does not hold it. */
  checkpoint(revision: RevisionKey, family: string | undefined): Promise<Checkpoint | undefined>;
}

export interface LoadPlace {
  readonly releases?: PolicyReleases | undefined;
  /** The candidates as they will be asked, for checks in advance (default: those of the configuration). */
  readonly candidates?: readonly DecisionCandidate[] | undefined;
  /** Routers that this process took back, sealed or not. */
  readonly takenBack?: ReleaseHistory["rollbacks"] | undefined;
  /** A person asks the checkpoint and nothing is served: it answers without a release, and a checkpoint that cannot answer
   *  is an error (default: false). */
  readonly asksOnly?: boolean | undefined;
}

export interface Loaded {
  /** What may serve now. */
  readonly served: Served;
  /** What serves if that is taken back. */
  readonly previous: Served | undefined;
  /** Why the learned policy does not serve, where it was asked for. */
  readonly refused?: string;
  /** Why the newest release does not serve, where an older one does. */
  readonly passedOver?: string;
}

export async function loadServed(config: RouterConfig, place: LoadPlace): Promise<Loaded> {
  const candidates = declareWith(config)(place.candidates ?? declaredCandidates(config));
  const ids = candidates.map((one) => one.id);
  const configured = readTable(config.table, ids);
  const plain = (why: string) => serveStatic(config, tableFor(config, { configured, ids }), why);
  const { checkpoint, enabled, strategy } = config;
  if (checkpoint === undefined)
    return { served: plain(`no checkpoint is configured: strategy ${strategy}`), previous: undefined };
  const context = { config, place, candidates, configured, ids };
  if (!enabled) {
    const why =
      "the learned policy is disabled, so the static table decides. A checkpoint that ROLLBOOK_CHECKPOINT names needs ROLLBOOK_POLICY=1, one of the file needs router.enabled: true";
    return { served: fallback(context, why), previous: undefined };
  }
  try {
    const standing = await standingOf(config, place);
    const { served, passedOver } = await learned(context, standing);
    const previous = await previousOf(context, { standing, served });
    return { served, previous, ...given({ passedOver }) };
  } catch (error) {
    if (place.asksOnly === true) throw error;
    const refused = reasonOf(error);
    const why = isNoneYet(error)
      ? refused
      : `the configured policy cannot serve, so the static table decides: ${refused}`;
    return { served: fallback(context, why), previous: undefined, refused };
  }
}

/** Builds the router of a shadow: it does not act, so no verdict is asked for. */
export function loadShadow(config: RouterConfig, { candidates: asked }: LoadPlace): Served | undefined {
  const { shadow } = config;
  if (shadow === undefined) return undefined;
  const candidates = declareWith(config)(asked ?? declaredCandidates(config));
  const ids = candidates.map((one) => one.id);
  const checkpoint = readCheckpoint(shadow.checkpoint);
  const table = tableFor(config, { configured: readTable(shadow.table, ids), model: checkpoint.model, ids });
  const floor = shadow.floor ?? checkpoint.promise?.record.floor ?? 0;
  const router = routerAround(checkpoint, config, {
    ...{ table, floor, exploration: shadow.exploration ?? DEFAULT_EXPLORATION },
  });
  requireFit(checkpoint, { ...config, candidates, where: shadow.checkpoint, router });
  return serve(router, { why: "shadow", model: checkpoint.model });
}

/** What a judge needs to judge a checkpoint as this configuration serves it. What is absent the checkpoint decides. */
export function settingsToJudge(
  config: RouterConfig,
): Pick<Router, "exploration"> & Partial<Pick<Router, "table" | "floor" | "constraints">> {
  const { exploration = DEFAULT_EXPLORATION, floor } = config;
  const table = readTable(config.table, Object.keys(config.candidates));
  const constraints = constraintsOf(config);
  return {
    exploration,
    ...given({ table, floor, constraints }),
  };
}

/** Changes when anything that `loadServed` reads has changed. */
export async function signatureOf(config: RouterConfig, { releases }: LoadPlace): Promise<string> {
  const { checkpoint, table, verdict, shadow } = config;
  const folders = [checkpoint === "released" ? undefined : checkpoint, shadow?.checkpoint];
  const files = [
    ...folders.flatMap((folder) =>
      folder === undefined ? [] : CHECKPOINT_FILES.map((name) => join(folder, name)),
    ),
    ...[table, shadow?.table, verdict].filter((path) => typeof path === "string"),
  ];
  const standing = await releases?.standing();
  return JSON.stringify([
    files.map(stampOf),
    standing?.verdicts.map(({ digest }) => digest),
    standing?.rollbacks.map(({ from, atMs }) => [from.digest, atMs]),
  ]);
}

const CHECKPOINT_FILES = ["policy.safetensors", "revision.json", "floor.json"];

interface LoadContext {
  readonly config: RouterConfig;
  readonly place: LoadPlace;
  readonly candidates: readonly DecisionCandidate[];
  readonly configured: StaticTable | undefined;
  readonly ids: readonly string[];
}

/** The table that the policy would fall back to, where it can be had: a static router that serves the same candidates. */
function fallback({ config, configured, ids }: LoadContext, why: string): Served {
  const fitted = configured === undefined && ids.length === 0 ? modelAt(config) : undefined;
  return serveStatic(config, tableFor(config, { configured, ids, ...(fitted && { model: fitted }) }), why);
}

function modelAt({ checkpoint }: RouterConfig) {
  try {
    return checkpoint === undefined || checkpoint === "released"
      ? undefined
      : readCheckpoint(checkpoint).model;
  } catch {
    // Told already, as the reason the policy does not serve.
    return undefined;
  }
}

/** Of the book, the newest release that fits the configuration: a newer one that does not fit takes no policy away. */
async function learned(
  context: LoadContext,
  standing: ReleaseHistory,
): Promise<Pick<Loaded, "served" | "passedOver">> {
  const { config, place } = context;
  if (config.checkpoint !== "released") {
    const checkpoint = readCheckpoint(config.checkpoint!, specOf(config));
    return { served: serveCheckpoint(checkpoint, config.checkpoint!, { ...context, standing }) };
  }
  const passed: { id: string; error: RollbookError }[] = [];
  const notHeld = (id: string, error: RollbookError) => passed.push({ id, error });
  for await (const release of releasedCheckpoints(context, standing, notHeld)) {
    try {
      return withPassed(serveRelease(release, { ...context, standing }), passed);
    } catch (error) {
      if (!(error instanceof RollbookError)) throw error;
      passed.push({ id: release.checkpoint.revision.record.id, error });
    }
  }
  if (place.releases === undefined)
    throw new RollbookError(
      "not-released",
      { family: config.family },
      "checkpoint: released needs a book. Name a folder, or open the router on a book.",
    );
  if (passed[0] !== undefined) throw passed[0].error;
  throw noRelease(context, standing);
}

function withPassed(
  served: Served,
  [newest, ...others]: readonly { id: string; error: RollbookError }[],
): Pick<Loaded, "served" | "passedOver"> {
  if (newest === undefined) return { served };
  const passedOver = reasonOf(newest.error);
  const more =
    others.length === 0 ? "" : ` Passed over for such reasons too: ${others.map(({ id }) => id).join(", ")}.`;
  const why = `${served.why}. A newer release is passed over: ${passedOver}${more}`;
  return { served: { ...served, why }, passedOver };
}

const NONE_YET = "none-released-yet";

/** The state of every book before its first release, and no fault. */
function isNoneYet(error: unknown): boolean {
  return error instanceof RollbookError && error.code === NONE_YET;
}

function noRelease({ config, configured, ids }: LoadContext, standing: ReleaseHistory): RollbookError {
  const { family } = config;
  const fields = { family, verdicts: standing.verdicts.length };
  if (standing.verdicts.length === 0 && (standing.distrusted ?? 0) === 0) {
    const [first] = tableFor(config, { configured, ids }).names;
    const serves = configured === undefined ? `${first} serves, the first of the list` : "the table decides";
    return new RollbookError(NONE_YET, fields, `no policy is released yet, so ${serves}`);
  }
  const [missing] = releasedRevisionsOf(standing);
  if (missing === undefined)
    return new RollbookError(
      "not-released",
      fields,
      `the book holds no checkpoint of ${family} that a gate verdict released${distrustOf(standing)}. Train from the book and judge it with \`rollbook gate\`, or name the folder of the checkpoint in router.checkpoint.`,
    );
  const { revision, verdict } = missing;
  const message = notHeldText({ verdict, id: revision.id, family });
  return new RollbookError("not-released", { ...fields, revision: revision.id }, message);
}

/** Of a policy that passed the gate, and was trained outside of the book that holds the verdict. */
export function notHeldText({
  verdict,
  id,
  family,
}: {
  verdict: Digest;
  id: string;
  family?: string;
}): string {
  const where = family === undefined ? "" : ` in family ${family}`;
  return `the gate verdict ${short(verdict)} releases revision ${id}, and the book holds no checkpoint of it${where}. Name its folder in router.checkpoint, or train it from the book (without --data) and judge it again.`;
}

function serveCheckpoint(
  checkpoint: Checkpoint,
  where: string,
  { config, place, candidates, configured, ids, standing }: LoadContext & { standing: ReleaseHistory },
): Served {
  const { model, promise, revision } = checkpoint;
  const { asksOnly = false } = place;
  const table = tableFor(config, { configured, model, ids });
  const checked = (router: Parameters<typeof serve>[0], facts: Parameters<typeof serve>[1]) => {
    requireFit(checkpoint, { ...config, candidates, where, router });
    return serve(router, facts);
  };
  const promised = config.floor ?? (promise === undefined ? 0 : promise.record.floor);
  if (promised === null && !asksOnly)
    throw new RollbookError(
      "no-floor",
      { where },
      `${where}: in training, no confidence floor kept the loss within the promised risk, so the policy decides no request. Train it again with more rows or a higher --floor-risk, or set router.floor.`,
    );
  const floor = promised ?? 0;
  const exploration = config.exploration ?? DEFAULT_EXPLORATION;
  const ungated = routerAround(checkpoint, config, { table, floor, exploration });
  // A checkpoint that does not fit is told as that, not as one that is not released.
  requireFit(checkpoint, { ...config, candidates, where, router: ungated });
  try {
    const { router, verdict } = findReleasedRouter(checkpoint, { config, table, standing });
    const why = `revision ${revision.record.id}, released by the gate verdict ${short(verdict)}`;
    return checked(router, { why, model, verdict });
  } catch (error) {
    if (!config.allowUngated && !asksOnly) throw error;
    const noFloor =
      promised === null
        ? "; no confidence floor keeps its promised risk, so a gateway would not serve it"
        : "";
    const served = checked(ungated, {
      why: `revision ${revision.record.id}, ${asksOnly ? "not released by a gate verdict" : "not gated (allowUngated)"}${noFloor}`,
      model,
    });
    if (!asksOnly && takenBack(served.digest, standing) !== undefined) throw error;
    return served;
  }
}

/** What served before: the release before this one, else the static table. */
async function previousOf(
  context: LoadContext,
  { standing, served }: { standing: ReleaseHistory; served: Served },
): Promise<Served> {
  for await (const release of releasedCheckpoints(context, standing)) {
    try {
      const other = serveRelease(release, { ...context, standing });
      if (other.digest !== served.digest) return other;
    } catch (error) {
      // An older release that no longer fits is passed over; the table is always there.
      if (!(error instanceof RollbookError)) throw error;
    }
  }
  return fallback(context, "the static table served before the first release");
}

interface Release {
  readonly checkpoint: Checkpoint;
  readonly where: string;
}

function serveRelease(
  { checkpoint, where }: Release,
  context: LoadContext & { standing: ReleaseHistory },
): Served {
  const { spec } = specOf(context.config);
  if (spec !== undefined) requireSpec(checkpoint.model, spec, checkpoint.revision.record.id);
  return serveCheckpoint(checkpoint, where, context);
}

/** Of the router's family, newest first, each once. Behind the newest, a policy that was taken back is left out whatever
 *  router was around it: its harm was seen, and only a newer verdict brings it back. */
async function* releasedCheckpoints(
  { config, place }: LoadContext,
  standing: ReleaseHistory,
  notHeld?: (id: string, error: RollbookError) => void,
): AsyncGenerator<Release> {
  let found = 0;
  for (const { revision, verdict } of releasedRevisionsOf(standing)) {
    if (found > 0 && isPolicyTakenBack(revision.digest, standing)) continue;
    const checkpoint = await place.releases?.checkpoint(revision, config.family);
    if (checkpoint === undefined) {
      // A policy of another family is no business of this router.
      if (notHeld !== undefined && (await place.releases?.checkpoint(revision, undefined)) === undefined) {
        const { id } = revision;
        notHeld(id, new RollbookError("not-released", { revision: id }, notHeldText({ verdict, id })));
      }
      continue;
    }
    yield { checkpoint, where: `revision ${revision.id} of the book` };
    if (++found === MOST_RELEASES) return;
  }
}

/** A look reads so many checkpoints at most; nearly always it needs two. */
const MOST_RELEASES = 20;

async function standingOf(
  { verdict }: Pick<RouterConfig, "verdict">,
  { releases, takenBack: own = [] }: LoadPlace,
): Promise<ReleaseHistory> {
  const standing: ReleaseHistory = (await releases?.standing()) ?? { verdicts: [], rollbacks: [] };
  const rollbacks = [...own, ...standing.rollbacks];
  if (verdict === undefined) return { ...standing, rollbacks };
  const record = openRecord(GateVerdict, readFileSync(verdict), verdict);
  return { verdicts: [seal(GateVerdict, record), ...standing.verdicts], rollbacks };
}

function readTable(table: RouterConfig["table"], ids: readonly string[]): StaticTable | undefined {
  if (table === undefined) return undefined;
  const known = ids.length === 0 ? undefined : ids;
  if (typeof table !== "string")
    return parseStaticTable(
      JSON.stringify({ schema: "rollbook.static-table.v1", ...table }),
      "router.table",
      known,
    );
  return parseStaticTable(readText(table, "a static table"), table, known);
}

function specOf({ features }: RouterConfig): { spec?: FeatureSpec } {
  if (features === undefined) return {};
  return { spec: parseFeatureSpec(parseJson(readText(features, "a feature spec"), features), features) };
}

function stampOf(path: string): string {
  try {
    const { ino, size, mtimeMs } = statSync(path);
    return `${ino} ${size} ${mtimeMs}`;
  } catch {
    return "missing";
  }
}
