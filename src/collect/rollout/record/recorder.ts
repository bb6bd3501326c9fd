/** Who keeps the record of a rollout and makes the artifact of it. Two kinds: the book's own recorder here, for agents
 *  that report their choices themselves, and a gateway, which records model calls as they pass.
 *  In: what the rollout is for; later how it ended. Out: a sealed artifact, ready to be uploaded. Does not store. */
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

/** The family of an agent's own run, where nothing finer was recorded: one candidate, taken with certainty. */
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
  /** The launch it is run for. */
  readonly experiment?: Id;
  /** The named router that chooses its models. */
  readonly router?: Digest;
  /** The number of the claim, which grows with every claim, also where the attempt does not. */
  readonly token?: number;
  readonly startedAtMs: number;
  readonly maxTurns?: number;
  readonly budgetUsd?: number;
  /** Cancels the rollout: a recorder that waits for a gateway waits no longer. */
  readonly signal?: AbortSignal;
}

export interface RolloutClosing extends Pick<RolloutDraft, "streams" | "calls"> {
  readonly ending: Ending;
  readonly scores: readonly Score[];
  readonly finalState?: Json;
  readonly endedAtMs: number;
}

/** A sealed artifact. Without blobs it stands in the book already. */
export interface Recorded {
  readonly content: Digest;
  readonly envelope: Digest;
  readonly blobs: readonly SealedBlob[];
}

export interface Recording {
  /** Where model calls of this rollout go, and the key that names it. */
  readonly baseUrl?: string;
  readonly apiKey?: string;
  /** What was recorded so far: rewards that count cost ask before the rollout is closed. */
  usage(): Promise<RolloutUsage>;
  /** Why its last model call was refused before it reached a model; undefined if it was not. */
  lastRefusal?(): Promise<string | undefined>;
  close(closing: RolloutClosing): Promise<Recorded>;
  /** No result: the rollout was cancelled, or will be tried again. */
  abandon(ending: Ending): Promise<void>;
}

export interface Recorder {
  /** Refuses where rollouts would be sealed in another book than this one. Asked before the first rollout begins. */
  checkBook?(book: Pick<Book, "id" | "root">): Promise<void>;
  open(opening: RolloutOpening): Promise<Recording>;
  /** Under which ids the results of an item may stand in the book, up to its claim `token`; the item's own unless given. */
  namesOf?(item: string, token: number): readonly string[];
  /** Whether this process sealed the artifact of that envelope, so that nothing has to be checked that sealing has checked;
   *  none unless given. Asked once for each. */
  sealedHere?(envelope: Digest): boolean;
  /** Whether an artifact under such an id is a result; all are unless given. */
  isReported?(content: Pick<RolloutContent, "ending" | "scores">): boolean;
}

/** Seals what the agent reports; knows of no model calls but those in its report. */
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

/** What the steps of an agent's own run are logged under. */
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
