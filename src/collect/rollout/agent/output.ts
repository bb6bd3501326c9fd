/** Reads the return value of an agent. In: any value. Out: scores, metrics, final state, ending, streams; or an error
 *  that is attributed to the agent. Accepts the names of other languages (`final_state`, `rewards`). Pure. */
import { canonicalize, type Json, parseId, reasonOf } from "../../../base/index.ts";
import type { Ending, RolloutContent, RolloutDraft } from "../../../contract/index.ts";
import { failedBy } from "./failure.ts";

export type Score = RolloutContent["scores"][number];

export interface ReadOutput {
  readonly scores: Score[];
  readonly metrics: Readonly<Record<string, number>>;
  readonly finalState?: Json;
  readonly ending: Ending;
  readonly streams: RolloutDraft["streams"];
  readonly calls: RolloutDraft["calls"];
}

const FIELDS: ReadonlySet<string> = new Set([
  ...["reward", "rewards", "metrics", "finalState", "final_state", "ending", "streams", "calls"],
  ...["error", "status_code", "stop_reason", "traceback"],
]);

export function readOutput(value: unknown): ReadOutput {
  if (value === undefined || value === null) return readFields({});
  if (typeof value === "number" || Array.isArray(value)) return readFields({ reward: value });
  if (typeof value !== "object")
    throw bad(`it returned a ${typeof value}, which is neither a number nor an object`);
  const unknown = Object.keys(value).find((name) => !FIELDS.has(name));
  if (unknown !== undefined)
    throw bad(
      `it returned the field ${JSON.stringify(unknown)}, which has no meaning. Known: ${[...FIELDS].join(", ")}`,
    );
  return readFields(value as Fields);
}

/** Total reward: the weighted sum of the scores. Null if no score has a weight. */
export function totalOf(scores: readonly Pick<Score, "value" | "weight">[]): number | null {
  const counted = scores.filter(({ weight }) => weight !== 0);
  return counted.length === 0 ? null : counted.reduce((sum, { value, weight }) => sum + value * weight, 0);
}

/** True if a stream can hold the value as a reward. Streams store 32-bit floats. */
export function isReward(value: number | null): boolean {
  return value === null || Number.isFinite(Math.fround(value));
}

type Fields = Record<string, unknown>;

function readFields(fields: Fields): ReadOutput {
  const metrics = readMetrics(fields.metrics);
  const rewards = readRewards(fields.reward ?? fields.rewards);
  if (!isReward(totalOf(rewards))) throw bad("its rewards add up to more than a 32-bit float holds");
  const taken = new Set<string>(rewards.map(({ name }) => name));
  const clash = Object.keys(metrics).find((name) => taken.has(name));
  if (clash !== undefined) throw bad(`${clash} is both a reward and a metric`);
  const asScores = Object.entries(metrics).map(([name, value]) => ({ name: idOf(name), value, weight: 0 }));
  const finalState = fields.finalState ?? fields.final_state;
  return {
    scores: [...rewards, ...asScores],
    metrics,
    ...(finalState === undefined ? {} : { finalState: jsonOf(finalState) }),
    ending: readEnding(fields),
    streams: (fields.streams ?? []) as RolloutDraft["streams"],
    calls: (fields.calls ?? []) as RolloutDraft["calls"],
  };
}

function readRewards(reward: unknown): Score[] {
  if (reward === undefined || reward === null) return [];
  if (typeof reward === "number")
    return [{ name: idOf("reward"), value: numberOf(reward, "reward"), weight: 1 }];
  if (Array.isArray(reward)) {
    const last = reward.length - 1;
    return reward.map((value, i) => ({
      name: idOf(i === last ? "reward" : `reward-${i + 1}`),
      value: numberOf(value, `reward[${i}]`),
      weight: i === last ? 1 : 0,
    }));
  }
  if (typeof reward !== "object") throw bad(`its reward is a ${typeof reward}`);
  return Object.entries(reward).map(([name, term]) => {
    const { value, weight } =
      typeof term === "number" ? { value: term, weight: 1 } : ((term ?? {}) as Fields);
    return {
      name: idOf(name),
      value: numberOf(value, `reward.${name}`),
      weight: numberOf(weight ?? 1, `reward.${name}.weight`),
    };
  });
}

function readMetrics(metrics: unknown): Record<string, number> {
  if (metrics === undefined || metrics === null) return {};
  if (typeof metrics !== "object" || Array.isArray(metrics))
    throw bad("its metrics are not an object of numbers");
  return Object.fromEntries(
    Object.entries(metrics).map(([name, value]) => [idOf(name), numberOf(value, `metrics.${name}`)]),
  );
}

/** Other frameworks report a failed rollout with `error` or a `status_code` above 399: not a success with score 0. */
function readEnding({ ending, error, status_code: status, stop_reason: reason }: Fields): Ending {
  if (ending !== undefined && ending !== null) {
    if (typeof ending !== "object")
      throw bad(`its ending is a ${typeof ending}, not an object such as {"kind": "terminal"}`);
    return ending as Ending;
  }
  if (error !== undefined && error !== null) {
    const { owner, message } = (typeof error === "object" ? error : { message: error }) as Fields;
    return {
      kind: "failed",
      owner: (owner ?? "agent") as "agent",
      message: String(message ?? "no reason given"),
    };
  }
  if (typeof status === "number" && status >= 400)
    return {
      kind: "failed",
      owner: "agent",
      message: `status ${status}: ${String(reason ?? "no reason given")}`,
    };
  return { kind: "terminal" };
}

function idOf(name: string): Score["name"] {
  try {
    return parseId(name, "name");
  } catch (cause) {
    throw bad(reasonOf(cause), cause);
  }
}

function numberOf(value: unknown, where: string): number {
  if (typeof value === "number" && Number.isFinite(value)) return value;
  throw bad(`${where} is ${typeof value === "number" ? value : `a ${typeof value}`}, not a finite number`);
}

function jsonOf(value: unknown): Json {
  try {
    return JSON.parse(canonicalize(value)) as Json;
  } catch (cause) {
    throw bad(`its final state is not JSON: ${reasonOf(cause)}`, cause);
  }
}

function bad(problem: string, cause?: unknown) {
  return failedBy(
    "agent",
    `the agent's result cannot be used: ${problem}.`,
    cause === undefined ? {} : { cause },
  );
}
