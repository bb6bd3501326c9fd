import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Digest } from "../../../base/digest.ts";
import { parseId } from "../../../base/ids.ts";
import { type DecisionCandidate, type DecisionToLog, stepOf } from "../../../policy/index.ts";
import { FrameReferences } from "./frame-references.ts";
import {
  type CalledParts,
  DIALECT_CODES,
  decodeCall,
  decodeFacts,
  encodeCall,
  isCall,
  type NewCall,
  OUTCOME_CODES,
} from "./journal-call.ts";

const count = fc.nat({ max: 2 ** 31 - 1 });
const amount = fc.double({ min: 0, max: 1e15, noNaN: true });
const bytes = fc.uint8Array({ maxLength: 40 });
const digest = fc.constant(`sha256:${"ab".repeat(32)}` as Digest);
const maybe = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined });

const revisions = [1, 2].map((n) => ({
  id: parseId(`r${n}`),
  digest: `sha256:${`0${n}`.repeat(32)}` as Digest,
}));
const revision = fc.constantFrom(...revisions);
const candidate = (id: string): fc.Arbitrary<DecisionCandidate> =>
  fc.record({
    id: fc.constant(id),
    selectable: fc.boolean(),
    reasons: fc.constantFrom([], ["failed"]),
    features: fc.constantFrom<Record<string, number>>({}, { callPrice: 0.1, lätency: 3 }),
  });
/** The same lists repeat, some frozen like those of a gateway and some not. */
const lists = fc
  .sample(fc.tuple(candidate("cheap"), candidate('ü\n"')), { numRuns: 6, seed: 1 })
  .map((list, i) => (i % 2 === 0 ? Object.freeze(list) : list));
const pair = fc.tuple(fc.double({ min: 0, max: 1, noNaN: true }), fc.constantFrom(0, 1 / 3, 1e-9));
const shadow = fc.record({ revision, chosen: fc.nat({ max: 1 }), probabilities: pair });
const decision: fc.Arbitrary<DecisionToLog["decision"]> = fc
  .record({
    ...{ chosen: fc.nat({ max: 1 }), probabilities: pair, confidence: fc.option(fc.constantFrom(0.25, 1)) },
    reason: fc.constantFrom("policy", "below-floor", "no-policy", "only-candidate", "constraints-relaxed"),
    ...{ monteCarlo: maybe(fc.constant({ draws: 64, floor: 0.01 })), policy: maybe(revision) },
    ...{ shadow: maybe(shadow), candidates: maybe(fc.constantFrom(...lists)) },
    relaxed: maybe(fc.constantFrom(["over-price"], ["over-price", "over-latency"])),
  })
  .map((all) => withoutUndefined(all) as DecisionToLog["decision"]);
const toLog: fc.Arbitrary<DecisionToLog> = fc.record({
  ...{ decision, revision, turn: count, call: count, candidates: fc.constantFrom(...lists) },
  context: fc.record({
    fields: fc.constantFrom<Record<string, number | boolean | string>>(
      ...[{}, { messages: 2, stream: true }, { messages: 1, tools: 0, stream: false, requestTokens: 9 }],
      ...[
        { maxTokens: 7, role: 'ü"' },
        { stream: 1, messages: "many", tools: true },
      ],
    ),
  }),
});

const facts: fc.Arbitrary<Omit<NewCall, "decided">> = fc.record({
  index: count,
  earlier: count,
  dialect: fc.constantFrom(...(Object.keys(DIALECT_CODES) as NewCall["dialect"][])),
  status: fc.nat({ max: 999 }),
  outcome: fc.constantFrom(...(Object.keys(OUTCOME_CODES) as NewCall["outcome"][])),
  startedAtMs: amount,
  firstByteMs: maybe(amount),
  durationMs: amount,
  usage: maybe(
    fc.record(
      { promptTokens: count, completionTokens: count, cachedTokens: count },
      { requiredKeys: ["promptTokens", "completionTokens"] },
    ),
  ),
  costUsd: maybe(amount),
  deliveries: fc.array(fc.record({ call: count, delivery: fc.constantFrom("sent", "aborted", "unknown") }), {
    maxLength: 3,
  }),
  sentDigest: maybe(digest),
  isRenamed: fc.constantFrom(true, undefined),
});
const FAMILY = parseId("family");
const logged = fc.array(toLog, { maxLength: 2 });
const parts: fc.Arbitrary<CalledParts> = fc.record({
  requestForm: fc.constantFrom("body", "facts"),
  replyForm: fc.constantFrom("json", "sse", "facts", "none"),
  bodyDigest: maybe(digest),
  replyDigest: maybe(digest),
  request: bytes,
  reply: fc.array(bytes, { maxLength: 3 }),
  media: fc.array(bytes, { maxLength: 2 }),
});

describe("a call in the journal", () => {
  it("is given back as it was, whatever it holds", () => {
    const target = { model: "ü", tokenizer: undefined };
    fc.assert(
      fc.property(facts, logged, parts, (rest, decisions, kept) => {
        const decided = decisions.map((each) => ({ ...each, family: FAMILY }));
        const call = { ...rest, decided };
        const texts = { rollout: Buffer.from("r-1"), target: Buffer.from(JSON.stringify(target)) };
        const payload = Buffer.concat(
          encodeCall(call, texts, kept, new FrameReferences()).map((part) => Buffer.from(part)),
        );
        const { request, reply, media, ...forms } = kept;
        const steps = JSON.parse(JSON.stringify(decisions.map(stepOf))) as unknown;
        // Only steps have a family.
        const stepFamily = decided.length === 0 ? undefined : FAMILY;
        const known = { ...rest, stepFamily, steps, ...forms, rollout: "r-1", target: { model: "ü" } };
        expect(isCall(payload)).toBe(true);
        expect(withoutUndefined(decodeFacts(payload, noFrame))).toEqual(withoutUndefined(known));
        const whole = decodeCall(payload, noFrame);
        expect(Buffer.compare(whole.request, Buffer.from(request))).toBe(0);
        expect(Buffer.compare(whole.reply, Buffer.concat(reply))).toBe(0);
        expect(whole.media.map((each) => [...each])).toEqual(media.map((each) => [...each]));
      }),
    );
  });

  it("of an earlier version keeps its steps, and one of a later version is refused", () => {
    const texts = { rollout: Buffer.from("r-1"), target: Buffer.from('{"model":"m"}') };
    const [call, kept] = fc.sample(fc.tuple(facts, parts), { numRuns: 1, seed: 1 })[0]!;
    const bare = { ...call, decided: [], deliveries: [], sentDigest: undefined };
    const none = {
      ...kept,
      bodyDigest: undefined,
      replyDigest: undefined,
      media: [],
      request: new Uint8Array(0),
      reply: [],
    };
    const [numbers] = encodeCall({ ...bare, isRenamed: undefined }, texts, none, new FrameReferences()) as [
      Uint8Array,
    ];
    const head = Buffer.from(numbers);
    const payload = (version: number, extra: object) => {
      const text = Buffer.from(JSON.stringify({ stepFamily: "router", sentDigest: "sha256:00", ...extra }));
      head.writeUInt32LE(text.length, 20);
      const former = [Buffer.from([version]), head.subarray(1, 92)];
      return Buffer.concat([...former, texts.rollout, texts.target, text]);
    };
    const steps = [{ turn: 0, reason: "ü" }];
    const extra = { stepFamily: "router", sentDigest: "sha256:00" };
    expect(decodeFacts(payload(1, { steps }), noFrame)).toMatchObject({ steps, ...extra });
    const [revision, candidates] = [revisions[0]!, lists[0]!];
    const fields = { messages: 2 };
    const decision = {
      chosen: 1,
      probabilities: [0.25, 0.75],
      reason: "no-policy" as const,
      confidence: null,
    };
    const written = [
      { revision, candidates },
      [1, decision.probabilities, decision.reason, null, 3, 3, fields, null, null],
    ];
    expect(decodeFacts(payload(2, { decided: [written] }), noFrame)).toMatchObject({
      steps: [stepOf({ decision, candidates, revision, context: { fields }, turn: 3, call: 3 })],
      ...extra,
    });
    expect(() => decodeFacts(payload(5, {}), noFrame)).toThrow("another version");
  });

  it("with a number that has no name is refused, and never read as another or as nothing", () => {
    const texts = { rollout: Buffer.from("r-1"), target: Buffer.from('{"model":"m"}') };
    const [call, kept] = fc.sample(fc.tuple(facts, parts), { numRuns: 1, seed: 1 })[0]!;
    const payload = Buffer.concat(
      encodeCall({ ...call, decided: [] }, texts, kept, new FrameReferences()).map((part) =>
        Buffer.from(part),
      ),
    );
    for (const [place, what] of [
      [1, "dialect"],
      [2, "outcome"],
      [3, "form"],
    ] as const) {
      const changed = Buffer.from(payload);
      changed[place] = 0x7f;
      expect(() => decodeFacts(changed, noFrame), what).toThrow(what);
    }
  });
});

function noFrame(): never {
  throw new Error("the entry refers to another entry");
}

function withoutUndefined(value: object): unknown {
  return Object.fromEntries(Object.entries(value).filter(([, each]) => each !== undefined));
}
