/** Loads the router that is to serve: reads files and the book's releases, verifies them, and builds the router
 *  separately.
 *  In: a configuration, the source of releases. Out: the router, or the reason why the learned policy may not serve. A
 *  table that cannot be read throws, because there would be no fallback. */
import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { type Digest, given, nearestName, parseJson, RollbookError, reasonOf, short } from "../base/index.ts";
import { GateVerdict, openRecord, type RevisionKey, seal } from "../contract/index.ts";
import {
  type Checkpoint,
  type DecisionCandidate,
  type FeatureSpec,
  parseFeatureSpec,
  parseStaticTable,
  type Router,
  readCheckpoint,
  requireFieldsOfCalls,
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
  passedRevisionsOf,
  type ReleaseHistory,
  releasedRevisionsOf,
  servesAfterRollback,
  takenBack,
} from "./released-routers.ts";
import { requireFit, routerAround, type Served, serve, serveStatic, tableFor } from "./served.ts";

/** Released policies of a book. */
export interface PolicyReleases {
  standing(): Promise<ReleaseHistory>;
  /** Checkpoint of a revision; undefined if it is of another family or the book does not hold it. */
  checkpoint(revision: RevisionKey, family: string | undefined): Promise<Checkpoint | undefined>;
}

export interface LoadPlace {
  readonly releases?: PolicyReleases | undefined;
  /** Candidates as they will be asked, for checks at start-up (default: those of the configuration). */
  readonly candidates?: readonly DecisionCandidate[] | undefined;
  /** Routers that this process rolled back, sealed or not. */
  readonly takenBack?: ReleaseHistory["rollbacks"] | undefined;
  /** True if a person queries the checkpoint and nothing is served (default: false). It then answers without a release,
   *  and a checkpoint that cannot answer is an error. */
  readonly asksOnly?: boolean | undefined;
}

export interface Loaded {
  /** Router that may serve now. */
  readonly served: Served;
  /** Router that serves after a rollback. */
  readonly previous: Served | undefined;
  /** Reason why a requested learned policy does not serve. `none-yet`: the book has no release yet, which is a normal
   *  state. */
  readonly refusal?: { readonly kind: "none-yet" | "fault"; readonly why: string };
  /** Reason why the newest release does not serve, if an older one does. */
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
    const decides = strategy === "table" ? "the static table" : `strategy ${strategy}`;
    const why = `the learned policy is disabled, so ${decides} decides. A checkpoint that ROLLBOOK_CHECKPOINT names needs ROLLBOOK_POLICY=1, one of the file needs router.enabled: true`;
    return { served: fallback(context, why), previous: undefined };
  }
  try {
    const standing = await standingOf(config, place);
    const { served, passedOver } = await learned(context, standing);
    const previous =
      place.asksOnly === true || servesAfterRollback(served.verdict, standing)
        ? undefined
        : await previousOf(context, { standing, served });
    return { served, previous, ...given({ passedOver }) };
  } catch (error) {
    if (place.asksOnly === true) throw error;
    const refusal = { kind: isNoneYet(error) ? "none-yet" : "fault", why: reasonOf(error) } as const;
    const why =
      refusal.kind === "none-yet"
        ? refusal.why
        : `the configured policy cannot serve, ${insteadOf(context)}: ${refusal.why}`;
    return { served: fallback(context, why), previous: undefined, refusal };
  }
}

/** Builds the router of a shadow. A shadow does not act, so it needs no verdict. */
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

/** Settings that a judge needs to judge a checkpoint as this configuration serves it. The checkpoint decides absent
 *  ones. `ids`: the candidates of the router, if they are known. */
export function settingsToJudge(
  config: RouterConfig,
  ids: readonly string[],
): Pick<Router, "exploration"> & Partial<Pick<Router, "table" | "floor" | "constraints">> {
  const { exploration = DEFAULT_EXPLORATION, floor } = config;
  const table = readTable(config.table, ids);
  const constraints = constraintsOf(config);
  return {
    exploration,
    ...given({ table, floor, constraints }),
  };
}

/** Changes when the stamped files, the verdicts or the rollbacks that `loadServed` reads have changed. */
export async function signatureOf(config: RouterConfig, { releases }: LoadPlace): Promise<string> {
  const { checkpoint, table, verdict, features, shadow } = config;
  const folders = [checkpoint === "released" ? undefined : checkpoint, shadow?.checkpoint];
  const files = [
    ...folders.flatMap((folder) =>
      folder === undefined ? [] : CHECKPOINT_FILES.map((name) => join(folder, name)),
    ),
    ...[table, shadow?.table, verdict, features].filter((path) => typeof path === "string"),
  ];
  const standing = await releases?.standing();
  return JSON.stringify([
    files.map(stampOf),
    standing?.verdicts.map(({ digest }) => digest),
    standing?.rollbacks.map(({ from, atMs }) => [from.digest, atMs]),
    standing?.distrusted,
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

/** Static router on the table that the policy would fall back to, if it is available; it serves the same candidates. */
function fallback({ config, configured, ids }: LoadContext, why: string): Served {
  const fitted = configured === undefined && ids.length === 0 ? modelAt(config) : undefined;
  return serveStatic(config, tableFor(config, { configured, ids, ...(fitted && { model: fitted }) }), why);
}

/** Names the choice of the router that `fallback` builds. */
function insteadOf({ config, configured, ids }: LoadContext): string {
  if (configured !== undefined || ids.length === 0) return "so the static table decides";
  const [first] = tableFor(config, { configured, ids }).names;
  return `and no table is configured, so the router prefers ${first}`;
}

function modelAt({ checkpoint }: RouterConfig) {
  try {
    return checkpoint === undefined || checkpoint === "released"
      ? undefined
      : readCheckpoint(checkpoint).model;
  } catch {
    // Already reported, as the reason why the policy does not serve.
    return undefined;
  }
}

/** Serves the named checkpoint, or the newest release of the book that fits the configuration. A newer release that
 *  does not fit is skipped, so that a policy still serves. */
async function learned(
  context: LoadContext,
  standing: ReleaseHistory,
): Promise<Pick<Loaded, "served" | "passedOver">> {
  const { config, place } = context;
  if (config.checkpoint !== "released") {
    const checkpoint = readConfigured(config.checkpoint!, specOf(config));
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
      "router.checkpoint is `released`, which needs a book with gate verdicts, and there is none. Name the book with --book, or the folder of a checkpoint in router.checkpoint.",
    );
  if (passed[0] !== undefined) throw passed[0].error;
  throw await noRelease(context, standing);
}

/** Reads the checkpoint that a configuration names. The value may be a misspelt `released`. */
export function readConfigured(...[folder, options]: Parameters<typeof readCheckpoint>): Checkpoint {
  if (existsSync(folder) || nearestName(folder, ["released"]) === undefined)
    return readCheckpoint(folder, options);
  throw new RollbookError(
    "no-checkpoint",
    { path: folder },
    `the folder ${folder} does not exist. Did you mean \`released\`, the newest release of the book? Otherwise name the folder that \`rollbook train\` wrote.`,
  );
}

function withPassed(
  served: Served,
  [newest, ...others]: readonly { id: string; error: RollbookError }[],
): Pick<Loaded, "served" | "passedOver"> {
  if (newest === undefined) return { served };
  const passedOver = reasonOf(newest.error);
  const more =
    others.length === 0 ? "" : ` For like reasons, ${others.map(({ id }) => id).join(", ")} cannot either.`;
  const why = `${served.why}, serves in place of ${newest.id}, which cannot: ${passedOver}${more}`;
  return { served: { ...served, why }, passedOver };
}

const NONE_YET = "none-released-yet";

/** True before the first release of a book, which is a normal state. */
function isNoneYet(error: unknown): boolean {
  return error instanceof RollbookError && error.code === NONE_YET;
}

/** The reason why no release of the router's family is in the book. Releases whose checkpoint is missing are reported
 *  before. */
async function noRelease(
  { config, place, configured, ids }: LoadContext,
  standing: ReleaseHistory,
): Promise<RollbookError> {
  const { family } = config;
  const fields = { family, verdicts: standing.verdicts.length };
  if (standing.verdicts.length === 0 && (standing.distrusted ?? 0) === 0) {
    const [first] = tableFor(config, { configured, ids }).names;
    const serves = configured === undefined ? `${first} serves, the first of the list` : "the table decides";
    return new RollbookError(NONE_YET, fields, `no policy is released yet, so ${serves}`);
  }
  const error = (message: string) => new RollbookError("not-released", fields, message);
  const familyOf = async (revision: RevisionKey) =>
    (await place.releases?.checkpoint(revision, undefined))?.revision.record.family;
  const others: { id: string; found: string }[] = [];
  for (const { revision, withdrawnAtMs: atMs } of passedRevisionsOf(standing)) {
    const found = await familyOf(revision);
    if (atMs !== undefined && (found ?? family) === family)
      return error(
        `a rollback withdrew the newest released policy of ${family}, revision ${revision.id}, at ${new Date(atMs).toISOString()}, and no verdict has released one since. \`rollbook route rollbacks\` prints the evidence. Judge a policy with \`rollbook gate\`.`,
      );
    if (atMs === undefined && found !== undefined) others.push({ id: revision.id, found });
  }
  const [other] = others;
  if (other !== undefined)
    return error(
      `no policy of family ${family} is released. The newest release of the book, revision ${other.id}, is of family ${other.found}. Set router.family to ${other.found}, or release a policy of ${family}.`,
    );
  return error(
    `the book holds no checkpoint of ${family} that a gate verdict released${distrustOf(standing)}. Train from the book and judge it with \`rollbook gate\`, or name the folder of the checkpoint in router.checkpoint.`,
  );
}

/** Message about a policy that passed the gate but was trained outside the book that holds the verdict. */
export function notHeldText({ verdict, id }: { verdict: Digest; id: string }): string {
  return `revision ${id} passed the gate (verdict ${short(verdict)}), but the book has no copy of its checkpoint, so \`checkpoint: released\` does not serve it. Set router.checkpoint to its folder, or train it from the book (without --data) and judge it again.`;
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
      `${where}: no confidence floor kept the loss of revision ${revision.record.id} within the promised risk in training, so it decides no request. Train it again with more rows or a higher --floor-risk, or set router.floor.`,
    );
  const floor = promised ?? 0;
  const exploration = config.exploration ?? DEFAULT_EXPLORATION;
  const ungated = routerAround(checkpoint, config, { table, floor, exploration });
  // A checkpoint that does not fit is reported as such, not as one that is not released.
  requireFit(checkpoint, { ...config, candidates, where, router: ungated });
  if (promised === null)
    return serveStatic(
      config,
      table,
      `no confidence floor keeps the promised risk of revision ${revision.record.id}, so a gateway would not serve it`,
    );
  try {
    const { router, verdict } = findReleasedRouter(checkpoint, { config, table, standing });
    const why = `revision ${revision.record.id}, released by the gate verdict ${short(verdict)}`;
    return checked(router, { why, model, verdict });
  } catch (error) {
    if (!config.allowUngated && !asksOnly) throw error;
    const served = checked(ungated, {
      why: `revision ${revision.record.id}, ${asksOnly ? "not released by a gate verdict" : "not gated (allowUngated)"}`,
      model,
    });
    if (!asksOnly && takenBack(served.digest, standing) !== undefined) throw error;
    return served;
  }
}

/** Router that served before: the release before this one, else the static table. */
async function previousOf(
  context: LoadContext,
  { standing, served }: { standing: ReleaseHistory; served: Served },
): Promise<Served> {
  for await (const release of releasedCheckpoints(context, standing)) {
    try {
      const other = serveRelease(release, { ...context, standing });
      if (other.digest !== served.digest) return other;
    } catch (error) {
      // An older release that no longer fits is skipped; the table is always available.
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

/** Released checkpoints of the router's family, newest first, each once. After the newest, a policy that was rolled
 *  back is left out, regardless of the router around it: it caused harm, and only a newer verdict restores it. */
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
      // A policy of another family does not concern this router.
      if (notHeld !== undefined && (await place.releases?.checkpoint(revision, undefined)) === undefined) {
        const { id } = revision;
        notHeld(id, new RollbookError("not-released", { revision: id }, notHeldText({ verdict, id })));
      }
      continue;
    }
    yield { checkpoint, where: "the book" };
    if (++found === MOST_RELEASES) return;
  }
}

/** Maximum number of checkpoints that one look reads; nearly always two are enough. */
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
  const isFile = typeof table === "string";
  const where = isFile ? table : "router.table";
  const text = isFile
    ? readText(table, "a static table")
    : JSON.stringify({ schema: "rollbook.static-table.v1", ...table });
  const parsed = parseStaticTable(text, where, known);
  requireFieldsOfCalls(parsed, where);
  return parsed;
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
