/** Makes the artifact of an open rollout. In: the rollout, its journaled calls, its ending. Out: sealed records.
 *  Pure. */
import { digestJson, type Id, parseId } from "../../../base/index.ts";
import {
  type Ending,
  type EndingLimit,
  type RecordedRollout,
  type SealedRollout,
  type Step,
  sealRecorded,
} from "../../../contract/index.ts";
import { rewardStream } from "../../reward-stream.ts";
import { totalOf } from "../../rollout/index.ts";
import type { EventOf, OpenedEvent } from "../journal/index.ts";
import type { RecordedCall, RolloutBuilder } from "./rollout-builder.ts";
import { tokenStreamsOf } from "./token-branches.ts";

/** Family of steps whose model the agent named itself: one candidate, no choice of the gateway. */
export const NAMED_FAMILY = parseId("gateway.named-model");
const NAMED_REVISION = {
  id: parseId("agent"),
  digest: digestJson("rollbook.named-model.v1", "the agent named the model"),
};

/** The builder has at least one call: an artifact needs a choice. */
export function sealOpenRollout(
  { id: rolloutId, opening }: { readonly id: Id; readonly opening: OpenedEvent },
  builder: RolloutBuilder,
  closing: Pick<EventOf<"closed">, "ending" | "scores" | "finalState"> & { worker: Id; endedAtMs: number },
): SealedRollout {
  const calls = [...builder.calls.values()].sort((a, b) => a.index - b.index);
  const { environment, task, assignment, group, seed, dataSource } = opening;
  const numbers = new Map(calls.map(({ index }, i) => [index, i]));
  const total = totalOf(closing.scores);
  // A non-finite sum is refused on arrival, but a journal of an earlier version may have one.
  const reward = total !== null && Number.isFinite(total) ? total : null;
  return sealRecorded({
    rolloutId,
    environment,
    task,
    ...(assignment === undefined ? {} : { assignment }),
    ...(group === undefined ? {} : { group }),
    seed,
    dataSource,
    sampling: builder.sampling ?? {},
    calls: calls.map(({ digest }) => digest),
    streams: streamsOf(builder, calls, numbers).map((each) => rewardStream(each, reward)),
    scores: closing.scores.map((score) => ({ ...score })),
    ending: closing.ending,
    ...(closing.finalState === undefined ? {} : { finalState: closing.finalState }),
    envelope: {
      worker: closing.worker,
      ...opening.run,
      startedAtMs: opening.atMs,
      endedAtMs: Math.max(opening.atMs, closing.endedAtMs),
      callTimes: calls.map(({ startedAtMs, firstByteMs, durationMs, delivery }) => ({
        startedAtMs,
        ...(firstByteMs === undefined ? {} : { firstByteMs }),
        durationMs,
        delivery,
      })),
    },
  });
}

/** The ending of a rollout without a close request, from its last reply. Without a builder there was no call. */
export function endingOf(builder: RolloutBuilder | undefined, capped: EndingLimit | undefined): Ending {
  if (capped !== undefined) return { kind: "truncated", limit: capped };
  const last = [...(builder?.calls.values() ?? [])].reduce<RecordedCall | undefined>(
    (a, b) => (a === undefined || b.index > a.index ? b : a),
    undefined,
  );
  if (last === undefined) return { kind: "cancelled" };
  if (last.outcome === "provider-failed" || last.outcome === "cut")
    return { kind: "failed", owner: "provider", message: `call ${last.index} to ${last.model} failed` };
  if (last.outcome === "disconnected") return { kind: "cancelled" };
  if (last.finish === "length") return { kind: "truncated", limit: "tokens" };
  const isOver = last.outcome === "answered" && last.finish === "stop" && !last.wantsTools;
  return isOver ? { kind: "terminal" } : { kind: "truncated", limit: "time" };
}

/** A record holds 1024 streams. The limit keeps the first branches and leaves room for the choices of routers. */
const MOST_TOKEN_STREAMS = 1000;

function streamsOf(
  builder: RolloutBuilder,
  calls: readonly RecordedCall[],
  numbers: ReadonlyMap<number, number>,
): RecordedRollout["streams"] {
  const streams: RecordedRollout["streams"] = [];
  for (const { branches, ...facts } of builder.tokens.values())
    for (const item of tokenStreamsOf(branches.branches, facts)) {
      if (streams.length === MOST_TOKEN_STREAMS) break;
      const segments = item.segments.map((part) => ({ ...part, call: numbers.get(part.call)! }));
      streams.push({ ...item, family: facts.family, tokenizer: facts.tokenizer, segments });
    }
  for (const family of new Set(builder.steps.map((each) => each.family))) {
    const own = builder.steps.filter((each) => each.family === family).map(({ step }) => step);
    streams.push({ level: "step", family, steps: chain(own, calls, numbers) });
  }
  if (streams.length === 0)
    streams.push({ level: "step", family: NAMED_FAMILY, steps: chain(calls.map(namedStep), calls, numbers) });
  return streams;
}

function namedStep({ index, model }: RecordedCall): Step {
  const candidate = { id: model.slice(0, 512), selectable: true, reasons: [], probability: 1 };
  return {
    revision: NAMED_REVISION,
    call: index,
    turn: index,
    candidates: [candidate],
    chosen: 0,
    reward: null,
    reason: "named by the agent",
  };
}

/** Steps in the order of their calls. Each step names the step it continues, unless that is the previous one. */
function chain(
  steps: readonly Step[],
  calls: readonly RecordedCall[],
  numbers: ReadonlyMap<number, number>,
): Step[] {
  const parents = new Map(calls.map(({ index, parent }) => [index, parent]));
  // Calls that started and were never recorded, for example before a crash, have no number.
  const ordered = steps.filter(({ call }) => numbers.has(call!)).sort((a, b) => a.call! - b.call!);
  const lastOf = new Map<number, number>();
  return ordered.map((step, i) => {
    const isFailover = ordered[i - 1]?.call === step.call;
    const parent = isFailover ? undefined : lastOf.get(parents.get(step.call!) ?? -1);
    lastOf.set(step.call!, i);
    return {
      ...step,
      call: numbers.get(step.call!)!,
      turn: numbers.get(step.call!)!,
      ...(parent === undefined || parent === i - 1 ? {} : { parent }),
    };
  });
}
