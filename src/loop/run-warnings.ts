/** What a loop tells its user about a run that goes on all the same. In: the run. Out: lines of its log. */
import { plural } from "../base/index.ts";
import { newestRelease } from "../book/serve/index.ts";
import { readsChains } from "../book/train/index.ts";
import type { RunContext } from "./stage-parts.ts";

/** The family of the policies that a loop trains, and that gateways serve unless told. */
export const POLICY_FAMILY = "router";

/** Gateways take the newest release of the book, whichever run made it; a run compares with its own releases only. */
export async function warnOfEarlierRelease({ book, config, log }: RunContext): Promise<void> {
  if (config.world.kind === "tokens") return;
  const served = await newestRelease(book, POLICY_FAMILY);
  if (served === undefined) return;
  log(
    `warning: this book already has a released policy, ${served.id}. ${config.run} does not compare with it: it judges against its own start and its own releases. A policy that ${config.run} releases replaces ${served.id} in gateways on this book. To keep them apart, name another book under book: or with --book.`,
  );
}

/** `chains`: rollouts with more than one decision. Their reward stands at the last one. */
export function warnOfChains({ config, log }: RunContext, chains: number): void {
  const single = config.learners.filter((learner) => !readsChains(learner)).map(({ kind }) => kind);
  if (chains === 0 || single.length === 0) return;
  log(
    `warning: ${plural(chains, "rollout")} with more than one decision. The reward stands at the last decision, the earlier ones have 0, and ${single.join(", ")} without a discount learns each by itself. Use learner.kind: cql with learner.discount above 0, or ask for the route in the first call only and name the model that answered (header x-rollbook-model) in later ones.`,
  );
}
