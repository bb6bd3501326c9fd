/** Counts the fields that a format cannot hold. In: rollouts and the fields of a format. Out: counts, largest first.
 *  A field counts once for each rollout that has it. */
import type { HandedRollout } from "./handed-rollout.ts";

/** Every part of a rollout that some format drops, with a test for its presence. */
const PARTS = {
  "calls.cost": ({ calls }) => calls.some(({ record }) => record.costUsd !== undefined),
  "calls.usage": ({ calls }) => calls.some(({ record }) => record.usage !== undefined),
  "conversations.forks": ({ conversations }) => conversations.length > 1,
  "conversations.media": (rollout) => hasPart(rollout, "media"),
  "conversations.thinking": (rollout) => hasPart(rollout, "thinking"),
  "conversations.tools": ({ conversations }) => conversations.some(({ tools }) => tools !== undefined),
  configs: ({ record }) => record.configs !== undefined,
  ending: ({ record }) => record.ending.kind !== "terminal",
  environment: () => true,
  finalState: ({ record }) => record.finalState !== undefined,
  reward: ({ reward }) => reward !== null,
  sampling: ({ record }) => Object.keys(record.sampling).length > 0,
  scores: ({ record }) => record.scores.length > 0,
  seed: ({ record }) => record.seed !== 0n,
  "streams.steps": ({ record }) => record.streams.some(({ level }) => level === "step"),
  "task.label": ({ task }) => task.label !== undefined,
  "task.payload": ({ task }) => task.payload !== undefined,
  times: ({ times }) => times !== undefined,
  "tokens.advantages": ({ tokens }) => tokens !== null && tokens.advantage !== null && tokens.advantage !== 0,
  "tokens.ids": ({ record }) => record.streams.some(({ level }) => level === "token"),
  "tokens.rewards": ({ tokens }) => (tokens?.rewards?.filter((each) => each !== 0).length ?? 0) > 1,
  "tokens.revisions": ({ tokens }) => tokens !== null,
  "tokens.tokenizer": ({ tokens }) => tokens?.tokenizer !== undefined,
  "tokens.turns": ({ tokens }) => tokens?.turns?.some((each) => each !== 0) === true,
  "tokens.weight": ({ tokens }) => tokens !== null && tokens.weightBps !== 10_000,
} as const satisfies Readonly<Record<string, (rollout: HandedRollout) => boolean>>;

export type RolloutPart = keyof typeof PARTS;
export const ROLLOUT_PARTS = Object.keys(PARTS) as readonly RolloutPart[];

export interface FieldLoss {
  readonly field: string;
  readonly count: number;
}

export class LossTally {
  readonly #counts = new Map<string, number>();

  add(field: string, count = 1): void {
    if (count > 0) this.#counts.set(field, (this.#counts.get(field) ?? 0) + count);
  }

  /** Counts every part that the rollout has and the format does not hold. */
  addParts(rollout: HandedRollout, carried: readonly RolloutPart[]): void {
    for (const [part, has] of Object.entries(PARTS) as [RolloutPart, (each: HandedRollout) => boolean][])
      if (!carried.includes(part) && has(rollout)) this.add(part);
  }

  list(): FieldLoss[] {
    return [...this.#counts]
      .map(([field, count]) => ({ field, count }))
      .sort((a, b) => b.count - a.count || (a.field < b.field ? -1 : 1));
  }
}

function hasPart({ conversations }: HandedRollout, kind: "media" | "thinking"): boolean {
  return conversations.some(({ turns }) =>
    turns.some(({ parts }) => parts.some((part) => part.kind === kind)),
  );
}
