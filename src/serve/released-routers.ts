/** Which routers may serve: those whose digest a gate verdict lets through and no later rollback took back.
 *  In: verdicts and rollbacks. Out: the router as it was judged, or why there is none. Pure. */
import { type Digest, plural, RollbookError } from "../base/index.ts";
import type { GateVerdict, RevisionKey, Rollback, Sealed } from "../contract/index.ts";
import { type Checkpoint, digestRouter, type Router, type StaticTable } from "../policy/index.ts";
import type { RouterConfig } from "./config.ts";
import { routerAround } from "./served.ts";

export interface ReleaseHistory {
  /** Verdicts that pass a candidate, newest first. */
  readonly verdicts: readonly Sealed<GateVerdict>[];
  readonly rollbacks: readonly Pick<Rollback, "from" | "atMs">[];
  /** Verdicts that pass a candidate and count for nothing: no trusted key signed them. */
  readonly distrusted?: number;
}

interface ReleasedRouter {
  readonly router: Router;
  readonly verdict: Digest;
}

/** The candidate that a verdict let through, as it was judged. */
function passedBy({ record: { passed, candidates } }: Sealed<GateVerdict>) {
  return candidates.find(({ outcome, revision }) => outcome === "pass" && revision.digest === passed?.digest);
}

/** The revisions that verdicts let through and no later rollback took back: newest first, each once. */
export function releasedRevisionsOf(standing: ReleaseHistory): { revision: RevisionKey; verdict: Digest }[] {
  const seen = new Set<Digest>();
  return standing.verdicts.flatMap((verdict) => {
    const judged = passedBy(verdict);
    if (judged === undefined || seen.has(judged.revision.digest)) return [];
    seen.add(judged.revision.digest);
    const back = takenBack(judged.router.digest, standing);
    if (back !== undefined && back >= verdict.record.atMs) return [];
    return [{ revision: judged.revision, verdict: verdict.digest }];
  });
}

/** Whether a router around this policy was taken back, and no verdict has passed the policy since. */
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

/** What the configuration leaves open is taken from the verdict: the judged router is the served one. */
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
      : `revision ${id} is not released as configured: ${faults[0]}. Judge it as it is to be served with \`rollbook gate --checkpoint DIR --router FILE\`, where FILE is the configuration of the gateway, configure what was judged, or set router.allowUngated.`,
  );
}

/** In words, where it may be the reason that nothing is released. */
export function distrustOf({ distrusted = 0 }: ReleaseHistory): string {
  return distrusted === 0 ? "" : ` (${plural(distrusted, "verdict")} not signed by a trusted key)`;
}

/** When a router was last taken back. */
export function takenBack(
  digest: Digest,
  { rollbacks }: Pick<ReleaseHistory, "rollbacks">,
): number | undefined {
  const times = rollbacks.filter(({ from }) => from.digest === digest).map(({ atMs }) => atMs);
  return times.length === 0 ? undefined : Math.max(...times);
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
