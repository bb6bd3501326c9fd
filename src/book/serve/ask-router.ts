/** One decision without a call: what the router would choose, and why.
 *  In: a configuration, a question, a book where there is one. Out: the decision with its explanation. Writes nothing. */
import { type Clock, RollbookError } from "../../base/index.ts";
import type { DecisionContext } from "../../policy/index.ts";
import {
  declaredCandidates,
  type Explanation,
  openRouter,
  type RouterConfig,
  type RouterStatus,
} from "../../serve/index.ts";
import type { OpenBook } from "../open/index.ts";
import { bookReleases, type Trusts, trustsOf } from "./releases.ts";

interface AskRequest {
  readonly context: DecisionContext;
  /** Ids (default: the candidates of the configuration). */
  readonly candidates?: readonly string[] | undefined;
  /** Fixes the draw, with the seed of the configuration. */
  readonly call?: string | undefined;
  readonly clock: Clock;
  /** Where released policies are found. */
  readonly book?: OpenBook | undefined;
  /** Whose signatures count, with `trust: signed` (default: the user's own key and those trusted beside it). */
  readonly trusts?: Trusts | undefined;
}

export interface AskedRouter {
  readonly explanation: Explanation;
  readonly candidates: readonly { readonly id: string; readonly probability: number }[];
  readonly status: Omit<RouterStatus, "counts" | "sinceMs">;
}

export async function askRouter(config: RouterConfig, request: AskRequest): Promise<AskedRouter> {
  const { context, clock, book, call = "ask" } = request;
  const declared = declaredCandidates(config);
  const candidates =
    request.candidates?.map(
      (id) =>
        declared.find((one) => one.id === id) ?? {
          id,
          selectable: true,
          reasons: [] as string[],
          features: {},
        },
    ) ?? declared;
  if (candidates.length === 0)
    throw new RollbookError(
      "no-candidate",
      {},
      "there is no candidate to choose among. Set router.candidates, or name some with --candidate.",
    );
  const releases =
    book === undefined ? undefined : bookReleases(book, { trusts: trustsOf(config, request.trusts) });
  // One question: nothing is watched.
  const { reload: _, ...once } = config;
  const router = await openRouter(once, { releases, clock, candidates });
  const answer = router.choose({ alias: config.aliases[0]!, context, candidates, call });
  const { counts: __, sinceMs: ___, ...status } = router.status();
  return {
    explanation: router.explain(answer),
    candidates: candidates.map(({ id }, i) => ({ id, probability: answer.decision.probabilities[i]! })),
    status,
  };
}
