/** The sealed fields that a trace format lacks, stored in its free-form part: everything except messages, ids, masks,
 *  log-probabilities and scores, which have their own fields. With these extras, a trace reads back as the same
 *  rollout. */
import * as z from "zod";
import { type Digest, isObject, type Json, RollbookError } from "../../base/index.ts";
import { Call, encodeWire, RolloutContent } from "../../contract/index.ts";
import type { HandedRollout, HandoverBatch, RolloutPart } from "../handover/index.ts";
import { requireShape } from "./trace-shape.ts";

/** The key of the extras in the free-form part. */
export const EXTRAS_KEY = "rollbook";
const EXTRAS_SCHEMA = "rollbook.trace-extras.v1";

/** Parts of a rollout that a trace holds, in fields of the format or in its extras. */
export const TRACED_PARTS: readonly RolloutPart[] = [
  ...(["calls.cost", "calls.usage", "configs", "ending", "environment", "finalState", "reward"] as const),
  ...(["conversations.forks", "conversations.thinking", "conversations.tools", "sampling"] as const),
  ...(["scores", "seed", "streams.steps", "task.label", "task.payload", "times", "tokens.ids"] as const),
  ...(["tokens.rewards", "tokens.revisions", "tokens.tokenizer", "tokens.turns"] as const),
];

export type TraceFields = { readonly [key: string]: Json };

export interface TraceExtras {
  readonly schema: typeof EXTRAS_SCHEMA;
  readonly batch: string | null;
  readonly contentDigest: string;
  readonly envelopeDigest: string | null;
  /** Fields of the content record besides calls, streams and scores. */
  readonly content: TraceFields;
  /** One entry per call: its record without messages and tools. */
  readonly calls: readonly TraceFields[];
  /** The token stream without its ids, log-probabilities and mask. Null: there is none. */
  readonly stream: TraceFields | null;
  /** Index of the token stream among the streams of the rollout. */
  readonly at: number;
  /** The step streams, each with its index. */
  readonly steps: readonly (readonly [number, TraceFields])[];
  /** Scorers by the name of the score. */
  readonly scorers: TraceFields;
  readonly reward: number | null;
  readonly excluded: string | null;
  /** The records that the rollout refers to, in an order in which another book can import them. */
  readonly records?: readonly TraceFields[];
  /** Present if the format itself has no field for scores. */
  readonly scores?: readonly { readonly name: string; readonly value: number; readonly weight: number }[];
  /** Present if the trace alone would be read as a different rollout. */
  readonly whole?: TraceWhole;
}

export interface TraceWhole {
  /** Digest of the trace's visible content. If it differs, the trace was edited. */
  readonly shown: Digest;
  /** The exchange form without an envelope. */
  readonly rollout: TraceFields;
}

const fields = z.record(z.string(), z.unknown());
const extrasShape = z.object({
  batch: z.string().nullable(),
  contentDigest: z.string(),
  envelopeDigest: z.string().nullable(),
  content: fields,
  calls: z.array(fields),
  stream: fields.nullable(),
  at: z.number(),
  steps: z.array(z.tuple([z.number(), fields])),
  scorers: fields,
  records: z.array(fields).optional(),
  scores: z.array(z.object({ name: z.string(), value: z.number(), weight: z.number() })).optional(),
  whole: z.object({ shown: z.string(), rollout: fields }).optional(),
});

export async function traceExtras(rollout: HandedRollout, batch: HandoverBatch | null): Promise<TraceExtras> {
  const wire = encodeWire(RolloutContent, rollout.record) as Record<string, Json>;
  const { schema: _, calls: _calls, streams, scores: _scores, ...content } = wire;
  const scorers = rollout.record.scores.filter(({ scorer }) => scorer !== undefined);
  return {
    schema: EXTRAS_SCHEMA,
    batch: batch?.digest ?? null,
    contentDigest: rollout.content,
    envelopeDigest: rollout.envelope ?? null,
    content,
    calls: rollout.calls.map(({ record }) => callExtras(encodeWire(Call, record) as Record<string, Json>)),
    stream: streamExtras(rollout),
    at: rollout.tokens?.stream ?? 0,
    steps: (streams as TraceFields[]).flatMap((stream, i) =>
      stream.level === "step" ? [[i, stream] as const] : [],
    ),
    scorers: Object.fromEntries(scorers.map(({ name, scorer }) => [name, scorer!])),
    reward: rollout.reward,
    excluded: rollout.excluded,
    records: (await rollout.records()) as TraceFields[],
  };
}

/** Undefined if the free-form part is not ours. Refuses an unknown version. */
export function readExtras(free: unknown, where: string): TraceExtras | undefined {
  const found = isObject(free) ? free[EXTRAS_KEY] : undefined;
  if (!isObject(found)) return undefined;
  if (found.schema === EXTRAS_SCHEMA) {
    const remedy = `Remove ${EXTRAS_KEY} to read the trace as one of another program.`;
    requireShape(extrasShape, found, { where: `${where}: ${EXTRAS_KEY}`, remedy });
    return found as unknown as TraceExtras;
  }
  throw new RollbookError(
    "unknown-version",
    { where, actual: found.schema, known: [EXTRAS_SCHEMA] },
    `${where}: ${EXTRAS_KEY}.schema is ${JSON.stringify(found.schema)}, this release reads ${EXTRAS_SCHEMA}. Remove ${EXTRAS_KEY} to read the trace as one of another program.`,
  );
}

function callExtras({ schema: _, request, response, ...rest }: Record<string, Json>): TraceFields {
  const { messages: _asked, tools: _tools, ...asked } = request as Record<string, Json>;
  const { messages: _said, ...said } = response as Record<string, Json>;
  return { ...rest, request: asked, response: said };
}

function streamExtras({ tokens, record }: HandedRollout): TraceFields | null {
  if (tokens === null) return null;
  const {
    columns: _,
    length: _length,
    samples: _samples,
    ...rest
  } = record.streams[tokens.stream] as never as Record<string, Json>;
  const { turns, rewards } = tokens;
  const claimed = tokens.claimed === undefined ? {} : { advantages: Array.from(tokens.claimed) };
  return {
    ...rest,
    ...(turns === undefined ? {} : { turns: Array.from(turns) }),
    ...(rewards === undefined ? {} : { rewards: Array.from(rewards) }),
    ...claimed,
  };
}
