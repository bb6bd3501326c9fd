/** Random valid inputs for properties: ids, digests, seeds, whole rollouts in exchange form. */
import fc from "fast-check";
import type { Json } from "../../src/base/canonical-json.ts";
import { digestFromBytes } from "../../src/base/digest.ts";
import { idFault } from "../../src/base/ids.ts";
import { weightsOf } from "./shelf.ts";

type Wire = Record<string, unknown>;

/** Mostly plain ids, sometimes any Unicode that an id may hold. */
export const anyId: fc.Arbitrary<string> = fc.oneof(
  { weight: 3, arbitrary: fc.stringMatching(/^[A-Za-z0-9_][A-Za-z0-9_.:+-]{0,20}$/) },
  {
    weight: 1,
    arbitrary: fc
      .string({ unit: "grapheme", minLength: 1, maxLength: 12 })
      .filter((text) => idFault(text) === undefined),
  },
);

export const anyDigest = fc.uint8Array({ minLength: 32, maxLength: 32 }).map(digestFromBytes);

/** A 64-bit integer in its wire form, a decimal string. */
export const anyU64 = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }).map(String);

export const anyFinite = fc.double({ noNaN: true, noDefaultInfinity: true });

/** Values that both an f32 column and JSON can hold: finite, and no negative zero. */
export const anyF32 = fc.float({ noNaN: true, noDefaultInfinity: true }).map((value) => value + 0);

/** Any JSON with well-formed strings; `__proto__` can be a key. */
export const anyJson = fc.letrec<{ json: Json }>((tie) => ({
  json: fc.oneof(
    { maxDepth: 3 },
    fc.constant(null),
    fc.boolean(),
    anyFinite.map((value) => value + 0),
    fc.string({ unit: "grapheme", maxLength: 10 }),
    fc.array(tie("json"), { maxLength: 4 }),
    fc.dictionary(fc.string({ unit: "grapheme", maxLength: 6 }), tie("json"), { maxKeys: 4 }),
  ),
})).json;

const timeMs = fc.nat();
const index = fc.nat({ max: 50 });

/** The digest is a function of the id, so that one id has one digest. */
const anyRevision = anyId.map((id) => ({ id, digest: weightsOf(id) }));

export const anyCallWire = fc.record(
  {
    dialect: fc.constantFrom("openai-chat", "openai-completions", "anthropic-messages", "other"),
    model: fc.string({ unit: "grapheme", maxLength: 20 }),
    request: fc.record({
      messages: fc.array(anyJson, { maxLength: 3 }),
      parameters: fc.dictionary(fc.constantFrom("temperature", "top_p", "stop"), anyJson),
    }),
    response: fc.record({ messages: fc.array(anyJson, { maxLength: 2 }) }),
    usage: fc.record({ promptTokens: index, completionTokens: index }),
    costUsd: anyFinite.map((value) => value + 0),
  },
  { requiredKeys: ["dialect", "model", "request", "response"] },
);

export const anyTokenStreamWire: fc.Arbitrary<Wire> = fc.integer({ min: 1, max: 12 }).chain((length) => {
  const column = <T>(value: fc.Arbitrary<T>) => fc.array(value, { minLength: length, maxLength: length });
  return fc.record(
    {
      level: fc.constant("token"),
      family: anyId,
      logprobKind: fc.constantFrom("sampling", "model"),
      revision: anyRevision,
      tokenizer: anyDigest,
      ids: column(fc.nat({ max: 2 ** 32 - 1 })),
      logprobs: column(anyF32.map((value) => (value > 0 ? -value : value))),
      mask: column(fc.constantFrom(0, 1)).map((mask) => mask.with(length - 1, 1)),
      turns: column(fc.nat({ max: 9 })),
      rewards: column(anyF32),
      advantages: column(anyF32),
    },
    { requiredKeys: ["level", "family", "logprobKind", "revision", "ids", "logprobs"] },
  );
});

const anyStep = fc
  .record({
    revision: anyRevision,
    selectable: fc.array(fc.boolean(), { minLength: 1, maxLength: 6 }).map((flags) => flags.with(0, true)),
    weights: fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 6, maxLength: 6 }),
    logged: fc.boolean(),
    pick: fc.nat(),
    turn: index,
    reward: fc.option(anyFinite.map((value) => value + 0)),
  })
  .map(({ revision, selectable, weights, logged, pick, turn, reward }) => {
    const open = selectable.flatMap((flag, i) => (flag ? [i] : []));
    const total = open.reduce((sum, i) => sum + weights[i]!, 0);
    return {
      revision,
      turn,
      candidates: selectable.map((flag, i) => ({
        id: `candidate ${i}`,
        selectable: flag,
        reasons: flag ? [] : ["over-budget"],
        probability: logged ? (flag ? weights[i]! / total : 0) : null,
      })),
      chosen: open[pick % open.length]!,
      reward,
    };
  });

export const anyStepStreamWire: fc.Arbitrary<Wire> = fc.record({
  level: fc.constant("step"),
  family: anyId,
  steps: fc.array(anyStep, { minLength: 1, maxLength: 4 }),
});

export const anyEndingWire = fc.oneof(
  fc.constantFrom<Wire>({ kind: "terminal" }, { kind: "cancelled" }),
  fc.record({
    kind: fc.constant("truncated"),
    limit: fc.constantFrom("turns", "tokens", "time", "budget"),
  }),
  fc.record({
    kind: fc.constant("failed"),
    owner: fc.constantFrom("agent", "task", "provider", "sandbox", "infrastructure"),
    message: fc.string({ unit: "grapheme", maxLength: 20 }),
  }),
);

/** The exchange form (`rollbook.rollout.v1`) of a valid rollout: several streams, calls, scores, any ending. */
export const anyRolloutWire: fc.Arbitrary<Wire> = fc
  .record(
    {
      schema: fc.constant("rollbook.rollout.v1"),
      rolloutId: anyId,
      environment: fc.tuple(anyId, anyId).map(([ref, version]) => `${ref}@${version}`),
      environmentDigest: anyDigest,
      task: fc.record({ id: anyId, digest: anyDigest }, { requiredKeys: ["id"] }),
      group: anyId,
      seed: anyU64,
      dataSource: fc.constantFrom("real", "synthetic"),
      sampling: fc.dictionary(fc.string({ unit: "grapheme", maxLength: 8 }), anyJson, { maxKeys: 3 }),
      calls: fc.array(anyCallWire, { maxLength: 2 }),
      streams: fc.array(fc.oneof(anyTokenStreamWire, anyStepStreamWire), { minLength: 1, maxLength: 3 }),
      scores: fc.array(
        fc.record({
          name: anyId,
          value: anyFinite.map((value) => value + 0),
          weight: anyFinite.map((value) => value + 0),
        }),
        { maxLength: 2 },
      ),
      ending: anyEndingWire,
      finalState: anyDigest,
      envelope: fc
        .record(
          { worker: anyId, startedAtMs: timeMs, attempt: index, claim: anyId, lasted: timeMs },
          { requiredKeys: ["worker", "startedAtMs", "lasted"] },
        )
        .map(({ lasted, ...rest }) => ({ ...rest, endedAtMs: rest.startedAtMs + lasted })),
    },
    {
      requiredKeys: [
        ...(["schema", "rolloutId", "environment", "task", "seed", "dataSource", "sampling"] as const),
        ...(["calls", "streams", "scores", "ending", "envelope"] as const),
      ],
    },
  )
  .map((wire) => wire as Wire);
