/** Keeps the record of a rollout and makes its artifact. There are two kinds: the book's own recorder, for agents that
 *  report their choices themselves, and a gateway, which records model calls as they pass.
 *  In: the purpose of the rollout, later its ending. Out: a sealed artifact, ready for upload. Does not store. */
import { type Digest, given, type Id, type Json, parseId } from "../../../base/index.ts";
import {
  type Ending,
  nameRevision,
  type PolicyRevision,
  type RolloutContent,
  type RolloutDraft,
  type Sealed,
  type SealedBlob,
  type Step,
  sealFinalState,
  sealRollout,
} from "../../../contract/index.ts";
import type { Book } from "../../../store/index.ts";
import { rewardStream } from "../../reward-stream.ts";
import { type RolloutUsage, type Score, totalOf } from "../agent/index.ts";

/** Family of an agent's own run, if no finer choices were recorded: one candidate, chosen with probability 1. */
export const AGENT_FAMILY = parseId("agent");

export interface RolloutOpening
  extends Pick<
    RolloutDraft,
    "environment" | "task" | "assignment" | "group" | "seed" | "dataSource" | "sampling"
  > {
  readonly rolloutId: Id;
  readonly agent: { readonly name: string; readonly digest: Digest };
  readonly worker: Id;
  readonly attempt: number;
  readonly claim?: Id;
  /** The launch that runs this rollout. */
  readonly experiment?: Id;
  /** The named router that chooses the models of this rollout. */
  readonly router?: Digest;
  /** The number of the claim. It grows with every claim, even if the attempt stays the same. */
  readonly token?: number;
  readonly startedAtMs: number;
  readonly maxTurns?: number;
  readonly budgetUsd?: number;
  /** Cancels the rollout. A recorder that waits for a gateway stops waiting. */
  readonly signal?: AbortSignal;
}

export interface RolloutClosing extends Pick<RolloutDraft, "streams" | "calls"> {
  readonly ending: Ending;
  readonly scores: readonly Score[];
  readonly finalState?: Json;
  readonly endedAtMs: number;
}

/** A sealed artifact. Without blobs, it is already in the book. */
export interface Recorded {
  readonly content: Digest;
  readonly envelope: Digest;
  readonly blobs: readonly SealedBlob[];
}

export interface Recording {
  /** URL for this rollout's model calls, and the key that identifies the rollout. */
  readonly baseUrl?: string;
  readonly apiKey?: string;
  /** Usage recorded so far. Rewards that depend on cost read it before the rollout is closed. */
  usage(): Promise<RolloutUsage>;
  /** Reason why the last model call was refused before it reached a model. Undefined if it was not refused. */
  lastRefusal?(): Promise<string | undefined>;
  close(closing: RolloutClosing): Promise<Recorded>;
  /** Ends without a result: the rollout was cancelled, or will be retried. */
  abandon(ending: Ending): Promise<void>;
}

export interface Recorder {
  /** Throws if rollouts would be sealed in another book. Called before the first rollout begins. */
  checkBook?(book: Pick<Book, "id" | "root">): Promise<void>;
  open(opening: RolloutOpening): Promise<Recording>;
  /** Ids under which the book may hold results of an item, up to its claim `token` (default: the item's own id). */
  namesOf?(item: string, token: number): readonly string[];
  /** True if this process sealed the artifact of that envelope, so that the checks of sealing need not run again.
   *  Called once per envelope (default: always false). */
  sealedHere?(envelope: Digest): boolean;
  /** True if an artifact under such an id is a result (default: always true). */
  isReported?(content: Pick<RolloutContent, "ending" | "scores">): boolean;
}

/** Seals the agent's report. Knows only the model calls in that report. */
export function bookRecorder(): Recorder {
  return {
    async open(opening) {
      return {
        usage: async () => ({ calls: 0, promptTokens: 0, completionTokens: 0, costUsd: 0 }),
        async close(closing) {
          const state = closing.finalState === undefined ? undefined : sealFinalState(closing.finalState);
          const { content, envelope, blobs } = sealRollout(draftOf(opening, closing, state?.digest));
          const all = state === undefined ? blobs : [state, ...blobs];
          return { content: content.digest, envelope: envelope.digest, blobs: all };
        },
        async abandon() {},
      };
    },
  };
}

function draftOf(
  opening: RolloutOpening,
  closing: RolloutClosing,
  finalState: Digest | undefined,
): RolloutDraft {
  const { rolloutId, environment, task, assignment, group, seed, dataSource, sampling } = opening;
  const { worker, attempt, claim, experiment, startedAtMs } = opening;
  const reward = totalOf(closing.scores);
  return {
    ...{ rolloutId, environment, task, assignment, group, seed, dataSource, sampling },
    calls: closing.calls,
    streams:
      closing.streams.length === 0
        ? [agentStream(opening, reward)]
        : closing.streams.map((stream) => rewardStream(stream, reward)),
    scores: closing.scores.map((score) => ({ ...score })),
    ending: closing.ending,
    ...(finalState === undefined ? {} : { finalState }),
    envelope: {
      ...{ worker, attempt, startedAtMs },
      ...given({ claim, experiment }),
      endedAtMs: Math.max(startedAtMs, closing.endedAtMs),
    },
  };
}

/** The policy revision under which the steps of an agent's own run are logged. */
export function agentRevision({ digest }: RolloutOpening["agent"]): Sealed<PolicyRevision> {
  return nameRevision(AGENT_FAMILY, { id: agentName(digest), digest });
}

export function agentName(digest: Digest): Id {
  return parseId(`agent-${digest.slice(7, 19)}`);
}

function agentStream({ agent }: RolloutOpening, reward: number | null): RolloutDraft["streams"][number] {
  const step: Step = {
    revision: { id: agentName(agent.digest), digest: agent.digest },
    turn: 0,
    candidates: [{ id: agent.name.slice(0, 512), selectable: true, reasons: [], probability: 1 }],
    chosen: 0,
    reward,
    reason: "the agent as it is",
  };
  return { level: "step", family: AGENT_FAMILY, steps: [step] };
}
