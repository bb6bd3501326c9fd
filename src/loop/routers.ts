/** Routers of a run: who chooses while a window collects, and who would serve. In: a policy of the run. Out: a router.
 *  Checkpoints stand in the run's folder; one that is gone is written again from the book. */
import { join } from "node:path";
import { type Digest, parseId, RollbookError } from "../base/index.ts";
import { loadPolicy, setupOf } from "../book/judge/index.ts";
import { restoreCheckpoint } from "../book/loop/index.ts";
import type { OpenBook } from "../book/open/index.ts";
import { behaviourRouter } from "../collect/sim/index.ts";
import { type LoopPolicy, PolicyRevision, type RevisionKey, type Sealed, seal } from "../contract/index.ts";
import { routerOf } from "../judge/index.ts";
import { digestRouter, parseStaticTable, type Router } from "../policy/index.ts";
import type { LoopConfig } from "./config.ts";
import type { RunState } from "./fold.ts";
import { readText } from "./read-text.ts";
import type { LoopWorld } from "./world/index.ts";

export interface RouterRequest {
  readonly config: LoopConfig;
  readonly world: Pick<LoopWorld, "models">;
  readonly exploration: number;
  /** Of a policy that is a revision. */
  readonly checkpoint: string | undefined;
}

/** The behaviour explores as it says; a revision by what is asked for. */
export function routerFor({ config, world, exploration, checkpoint }: RouterRequest): Router {
  const { table, floor, behaviour } = config;
  if (checkpoint !== undefined)
    return routerOf(
      setupOf(loadPolicy(checkpoint), {
        ...(table === undefined ? {} : { table }),
        ...(typeof floor === "number" ? { floor } : {}),
        exploration,
      }),
    );
  const { policy, epsilon, temperature } = behaviour;
  return behaviourRouter(policy, {
    models: world.models,
    ...(table === undefined
      ? {}
      : { table: parseStaticTable(readText(table, "a static table"), table, world.models) }),
    ...(epsilon === undefined ? {} : { epsilon }),
    ...(temperature === undefined ? {} : { temperature }),
  });
}

/** The name under which the gateway logs a router's choices. */
export function routerKey(router: Router): RevisionKey {
  const digest = digestRouter(router);
  return { id: parseId(`router-${digest.slice(7, 19)}`), digest };
}

/** A router as a revision: numbered by releases, so that drift between windows can be measured. */
export function routerRevision(
  family: string,
  key: RevisionKey,
  { releases, atMs }: { releases: number; atMs: number },
): Sealed<PolicyRevision> {
  return seal(PolicyRevision, {
    ...{ family: parseId(family), ...key, number: BigInt(releases + 1), producedAtMs: atMs },
  });
}

export function checkpointFolder(folder: string, window: number): string {
  return join(folder, `window-${window}`);
}

/** The folder of the checkpoint behind a policy of the run; undefined for the behaviour. */
export async function checkpointOf(
  policy: LoopPolicy,
  { book, state, folder }: { book: OpenBook; state: RunState; folder: string },
): Promise<string | undefined> {
  if (policy.kind === "behaviour") return undefined;
  const { revision } = policy;
  const made = state.windows.find((each) => each.at("trained")?.step.revision.digest === revision.digest);
  if (made === undefined) throw unknownRevision(revision.digest);
  const path = checkpointFolder(folder, made.number);
  await restoreCheckpoint(book, made.need("trained").envelope.revision!, path);
  return path;
}

function unknownRevision(digest: Digest): RollbookError {
  return new RollbookError(
    "loop-gap",
    { revision: digest },
    `no window of the run trained ${digest}. Restore the book from a copy.`,
  );
}
