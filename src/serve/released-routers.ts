/** Decides which routers may serve: a gate verdict passes their digest, and no later rollback withdrew it.
 *  In: verdicts and rollbacks. Out: the router as it was judged, or the reason why there is none. Pure. */
import { type Digest, plural, RollbookError } from "../base/index.ts";
import type { GateVerdict, RevisionKey, Rollback, Sealed } from "../contract/index.ts";
import { type Checkpoint, digestRouter, type Router, type StaticTable } from "../policy/index.ts";
import type { RouterConfig } from "./config.ts";
import { routerAround } from "./served.ts";

export interface ReleaseHistory {
  /** Verdicts that pass a candidate, newest first. */
  readonly verdicts: readonly Sealed<GateVerdict>[];
  readonly rollbacks: readonly Pick<Rollback, "from" | "atMs">[];
  /** Number of passing verdicts that do not count, because no trusted key signed them. */
  readonly distrusted?: number;
}

interface ReleasedRouter {
  readonly router: Router;
  readonly verdict: Digest;
}

interface PassedRevision {
  readonly revision: RevisionKey;
  readonly verdict: Digest;
  readonly withdrawnAtMs: number | undefined;
}

/** Candidate that a verdict passes, as it was judged. */
function passedBy({ record: { passed, candidates } }: Sealed<GateVerdict>) {
  return candidates.find(({ outcome, revision }) => outcome === "pass" && revision.digest === passed?.digest);
}

/** Revisions that verdicts pass and no later rollback withdrew: newest first, each once. */
export function releasedRevisionsOf(standing: ReleaseHistory): { revision: RevisionKey; verdict: Digest }[] {
  return passedRevisionsOf(standing).filter(({ withdrawnAtMs }) => withdrawnAtMs === undefined);
}

/** Revisions that verdicts pass, newest first, each once: with the time at which a rollback withdrew it, if one did so
 *  after its newest verdict. */
export function passedRevisionsOf(standing: ReleaseHistory): PassedRevision[] {
  const seen = new Set<Digest>();
  return standing.verdicts.flatMap((verdict) => {
    const judged = passedBy(verdict);
    if (judged === undefined || seen.has(judged.revision.digest)) return [];
    seen.add(judged.revision.digest);
    const back = takenBack(judged.router.digest, standing);
    const isWithdrawn = back !== undefined && back >= verdict.record.atMs;
    const withdrawnAtMs = isWithdrawn ? back : undefined;
    return [{ revision: judged.revision, verdict: verdict.digest, withdrawnAtMs }];
  });
}

/** True if a router around this policy was rolled back, and no verdict has passed the policy since. */
export function isPolicyTakenBack(policy: Digest, standing: ReleaseHistory): boolean {
  const passes = standing.verdicts.flatMap((verdict) => {
    const judged = passedBy(verdict);
    return judged?.revision.digest === policy
      ? [{ router: judged.router.digest, atMs: verdict.record.atMs }]
      : [];
  });
  const newestMs = Math.max(...passes.map(({ atMs }) => atMs));
  return passes.some(({ router }) => (takenBack(router, standing) ?? Number.NEGATIVE_INFINITY) >= newestMs);
}

/** Settings that the configuration leaves open come from the verdict, so that the served router is the judged one. */
export function findReleasedRouter(
  checkpoint: Checkpoint,
  { config, table, standing }: { config: RouterConfig; table: StaticTable; standing: ReleaseHistory },
): ReleasedRouter {
  const { id, digest } = checkpoint.revision.record;
  const faults: string[] = [];
  for (const verdict of standing.verdicts) {
    const judged = passedBy(verdict);
    if (judged?.revision.digest !== digest || judged.router.floor === null) continue;
    const { floor, exploration } = judged.router;
    const router = routerAround(checkpoint, config, {
      ...{ table, floor: config.floor ?? floor, exploration: config.exploration ?? exploration },
    });
    const served = digestRouter(router);
    if (served !== judged.router.digest) {
      faults.push(differences(router, judged.router));
      continue;
    }
    const back = takenBack(served, standing);
    if (back === undefined || back < verdict.record.atMs) return { router, verdict: verdict.digest };
    faults.push(`it was taken back after that verdict, at ${new Date(back).toISOString()}`);
  }
  throw new RollbookError(
    "not-released",
    { revision: id, digest },
    faults.length === 0
      ? `no gate verdict releases revision ${id}${distrustOf(standing)}. Judge it with \`rollbook gate --checkpoint DIR --router FILE\`, where FILE is the configuration of the gateway, or set router.allowUngated.`
      : `revision ${id} is not released as configured: ${faults[0]}. Configure the judged value, or judge the configured one: \`rollbook gate --checkpoint DIR --router FILE\`, where FILE is the configuration of the gateway. Or set router.allowUngated to serve it without a verdict.`,
  );
}

/** Text about untrusted verdicts, which may be the reason that nothing is released. */
export function distrustOf({ distrusted = 0 }: ReleaseHistory): string {
  return distrusted === 0 ? "" : ` (${plural(distrusted, "verdict")} not signed by a trusted key)`;
}

/** Time of the last rollback of a router. */
export function takenBack(
  digest: Digest,
  { rollbacks }: Pick<ReleaseHistory, "rollbacks">,
): number | undefined {
  const times = rollbacks.filter(({ from }) => from.digest === digest).map(({ atMs }) => atMs);
  return times.length === 0 ? undefined : Math.max(...times);
}

/** True if a verdict after the rollback passes the withdrawn router. */
export function isReleasedSince(
  { from, atMs }: Pick<Rollback, "from" | "atMs">,
  { verdicts }: Pick<ReleaseHistory, "verdicts">,
): boolean {
  return verdicts.some(
    (verdict) => verdict.record.atMs > atMs && passedBy(verdict)?.router.digest === from.digest,
  );
}

/** True if a rollback happened after the verdict that releases a router. Then the router serves because a newer one was
 *  withdrawn: it is not new, and is not compared with the router before it. */
export function servesAfterRollback(verdict: Digest | undefined, standing: ReleaseHistory): boolean {
  const release = standing.verdicts.find(({ digest }) => digest === verdict);
  return release !== undefined && standing.rollbacks.some(({ atMs }) => atMs >= release.record.atMs);
}

type JudgedRouter = GateVerdict["candidates"][number]["router"];

function differences(router: Router, judged: JudgedRouter): string {
  const found = [
    ...(router.table.digest === judged.table ? [] : ["another static table"]),
    ...(router.floor === judged.floor ? [] : [`floor ${router.floor}, judged ${judged.floor}`]),
    ...(router.exploration === judged.exploration
      ? []
      : [`exploration ${router.exploration}, judged ${judged.exploration}`]),
  ];
  return `it is configured with ${found.length === 0 ? "other constraints than were judged" : found.join(", ")}`;
}
