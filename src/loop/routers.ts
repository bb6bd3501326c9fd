/** Builds the routers of a run: the one that chooses while a window collects, and the one that would serve.
 *  In: a policy of the run. Out: a router. Checkpoints lie in the run's folder; a missing one is restored from the
 *  book. */
import { join } from "node:path";
import { type Digest, given, parseId, RollbookError } from "../base/index.ts";
import { loadPolicy, setupOf } from "../book/judge/index.ts";
import { restoreCheckpoint } from "../book/loop/index.ts";
import type { OpenBook } from "../book/open/index.ts";
import { behaviourRouter } from "../collect/sim/index.ts";
import { type LoopPolicy, PolicyRevision, type RevisionKey, type Sealed, seal } from "../contract/index.ts";
import { routerOf } from "../judge/index.ts";
import { digestRouter, parseStaticTable, type Router } from "../policy/index.ts";
import { readText } from "../store/index.ts";
import { revisionsOf, windowCandidates } from "./candidates.ts";
import type { LoopConfig } from "./config.ts";
import type { RunState } from "./fold.ts";
import type { LoopWorld } from "./world/index.ts";

interface RouterRequest {
  readonly config: LoopConfig;
  readonly world: Pick<LoopWorld, "models">;
  readonly exploration: number;
  /** Folder of the checkpoint; set only if the policy is a revision. */
  readonly checkpoint: string | undefined;
}

/** The behaviour has its own exploration; a revision uses the given one. */
export function routerFor({ config, world, exploration, checkpoint }: RouterRequest): Router {
  const { table, floor, behaviour } = config;
  if (checkpoint !== undefined)
    return routerOf(
      setupOf(loadPolicy(checkpoint), {
        ...(table === undefined ? {} : { table }),
        ...(typeof floor === "number" ? { floor } : {}),
        ...{ exploration, known: world.models },
      }),
    );
  const { policy, epsilon, temperature } = behaviour;
  return behaviourRouter(policy, {
    models: world.models,
    ...(table === undefined
      ? {}
      : { table: parseStaticTable(readText(table, "a static table"), table, world.models) }),
    ...given({ epsilon, temperature }),
  });
}

/** Name under which the gateway logs a router's choices. */
export function routerKey(router: Router): RevisionKey {
  const digest = digestRouter(router);
  return { id: parseId(`router-${digest.slice(7, 19)}`), digest };
}

/** Router as a revision, numbered by releases, so that drift between windows can be measured. */
export function routerRevision(
  family: string,
  key: RevisionKey,
  { releases, atMs }: { releases: number; atMs: number },
): Sealed<PolicyRevision> {
  return seal(PolicyRevision, {
    ...{ family: parseId(family), ...key, number: BigInt(releases + 1), producedAtMs: atMs },
  });
}

/** Folder of the checkpoint of a policy of the run, or of one that the book served when a window was planned; undefined
 *  for the behaviour. */
export async function checkpointOf(
  policy: LoopPolicy,
  { book, state, folder, config }: { book: OpenBook; state: RunState; folder: string; config: LoopConfig },
): Promise<string | undefined> {
  if (policy.kind === "behaviour") return undefined;
  const { id, digest } = policy.revision;
  for (const window of state.windows)
    for (const [i, { revision, record }] of revisionsOf(window).entries()) {
      if (revision.id !== id || revision.digest !== digest) continue;
      const path = windowCandidates(config, window.number, folder)[i]!.folder;
      await restoreCheckpoint(book, record, path);
      return path;
    }
  for (const window of state.windows) {
    const { step, envelope } = window.need("planned");
    if (step.baseline?.digest === digest && envelope.baseline !== undefined)
      return restoreServed({ book, folder }, { revision: step.baseline, record: envelope.baseline });
  }
  throw unknownRevision(digest);
}

/** Folder of a policy that the book serves. */
export async function restoreServed(
  { book, folder }: { book: OpenBook; folder: string },
  { revision, record }: { revision: RevisionKey; record: Digest },
): Promise<string> {
  const path = join(folder, `served-${revision.digest.slice(7, 19)}`);
  await restoreCheckpoint(book, record, path);
  return path;
}

function unknownRevision(digest: Digest): RollbookError {
  return new RollbookError(
    "loop-gap",
    { revision: digest },
    `no window of the run trained ${digest}. Restore the book from a copy.`,
  );
}
