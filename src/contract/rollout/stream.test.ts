import { describe, expect, test } from "vitest";
import { refusalOf } from "../../../test/support/refusal-of.ts";
import { makeRollout, stepWire, weightsOf } from "../../../test/support/shelf.ts";
import { checkTokenColumns, sampleCount, type TokenStream } from "./stream.ts";

const r1 = { id: "policy-r1", digest: weightsOf("policy-r1") };
const r2 = { id: "policy-r2", digest: weightsOf("policy-r2") };
const token = (stream: object) => makeRollout("r", {}, stream as Record<string, unknown>);
const step = (over: object) => makeRollout("r", { streams: [stepWire({ step: over })] });

describe("token streams", () => {
  test("a hot swap is two segments, each with its revision", () => {
    const segments = [
      { start: 0, end: 2, revision: r1 },
      { start: 2, end: 3, revision: r2 },
    ];
    const { record } = token({ revision: undefined, segments }).content;
    expect(record.streams[0]).toMatchObject({ length: 3, samples: 2, segments });
  });

  test("segments that overlap, are empty, leave the stream or miss a sampled token are refused", () => {
    const bad = [
      [
        { start: 0, end: 2, revision: r1 },
        { start: 1, end: 3, revision: r2 },
      ],
      [{ start: 1, end: 1, revision: r1 }],
      [{ start: 0, end: 4, revision: r1 }],
      [{ start: 0, end: 2, revision: r1 }],
    ];
    for (const segments of bad)
      expect(refusalOf(() => token({ revision: undefined, segments })).code).toBe("bad-mask");
    expect(refusalOf(() => token({ revision: undefined })).message).toContain(
      "neither a revision nor segments",
    );
  });

  test("a revision and segments together are refused: one of them would be ignored", () => {
    const segments = [{ start: 0, end: 3, revision: r2 }];
    expect(refusalOf(() => token({ revision: r1, segments })).fields.field).toBe("streams[0]");
  });

  test("one revision id with two digests in one family is refused", () => {
    const segments = [
      { start: 0, end: 2, revision: r1 },
      { start: 2, end: 3, revision: { ...r1, digest: r2.digest } },
    ];
    expect(refusalOf(() => token({ revision: undefined, segments })).code).toBe("revision-conflict");
  });

  test("one revision id with two digests in two streams of one family is refused", () => {
    const { streams } = makeWire();
    const swapped = { ...streams[0]!, revision: { ...r1, digest: r2.digest } };
    expect(refusalOf(() => makeRollout("r", { streams: [streams[0], swapped] })).code).toBe(
      "revision-conflict",
    );
    expect(
      makeRollout("r", { streams: [streams[0], { ...swapped, family: "another" }] }).content.record.streams,
    ).toHaveLength(2);
  });

  test("columns read from elsewhere are held to the claims of the stream", () => {
    const item = token({}).content.record.streams[0] as TokenStream;
    const columns = {
      ids: Uint32Array.of(1, 2, 3),
      logprobs: new Float32Array(3),
      mask: Uint8Array.of(0, 1, 1),
    };
    checkTokenColumns(item, columns, "s");
    const refused = (over: object) => refusalOf(() => checkTokenColumns(item, { ...columns, ...over }, "s"));
    expect(refused({ mask: Uint8Array.of(1, 1, 1) })).toMatchObject({ fields: { expected: 2, actual: 3 } });
    expect(refused({ mask: Uint8Array.of(0, 1, 7) })).toMatchObject({ fields: { index: 2, value: 7 } });
    expect(refused({ rewards: Float32Array.of(0, 0, Number.NaN) })).toMatchObject({
      code: "non-finite-number",
      fields: { field: "s.rewards", index: 2 },
    });
    expect(sampleCount(item)).toBe(2);
  });
});

describe("step streams", () => {
  const [small, large, huge] = (stepWire() as { steps: { candidates: object[] }[] }).steps[0]!.candidates;

  test.each([
    ["a choice that is not there", { chosen: 3 }],
    ["a choice that was not selectable", { chosen: 2 }],
    [
      "a choice of probability 0",
      {
        candidates: [
          { ...small, probability: 0 },
          { ...large, probability: 1 },
        ],
      },
    ],
    ["probabilities that do not sum to 1", { candidates: [{ ...small, probability: 0.5 }, large] }],
    ["half a distribution", { candidates: [small, { ...large, probability: null }] }],
    ["two candidates of one id", { candidates: [small, { ...large, id: "small" }] }],
    ["a selectable candidate with reasons against it", { candidates: [{ ...small, reasons: ["x"] }, large] }],
    [
      "an unselectable candidate with probability",
      { candidates: [{ ...huge, probability: 0.1 }, small, large] },
    ],
    ["a parent that does not come before", { parent: 0 }],
    [
      "a probability below the floor that the step states",
      { candidates: [small, large], monteCarlo: { draws: 256, floor: 0.45 } },
    ],
    ["a propensity beside the whole distribution", { candidates: [small, large], propensity: 0.5 }],
    [
      "a propensity of 0",
      { candidates: [small, large].map((each) => ({ ...each, probability: null })), propensity: 0 },
    ],
    [
      "draws behind probabilities that are not logged",
      {
        candidates: [small, large].map((each) => ({ ...each, probability: null })),
        monteCarlo: { draws: 256, floor: 0.01 },
      },
    ],
  ])("%s is refused", (_, over) => {
    expect(refusalOf(() => step(over))).toMatchObject({
      code: "bad-choice",
      fields: { field: "streams[0].steps[0]" },
    });
  });

  test("how the probabilities were drawn is sealed, and a step without it has the bytes it had before", () => {
    const monteCarlo = { draws: 256, floor: 0.01 };
    const sealed = step({ candidates: [small, large], monteCarlo }).content;
    expect(sealed.record.streams[0]).toMatchObject({ steps: [{ monteCarlo }] });
    expect(Buffer.from(step({ candidates: [small, large] }).content.bytes).toString()).not.toContain(
      "monteCarlo",
    );
    expect(refusalOf(() => step({ monteCarlo: { draws: 0, floor: 0 } })).code).toBe("bad-record");
  });

  test("a policy, its confidence and a shadow are sealed, and a step without them has the bytes it had before", () => {
    const shadow = { revision: { id: "r9", digest: weightsOf("r9") }, chosen: 1, probabilities: [0, 1] };
    const policy = { id: "p1", digest: weightsOf("p1") };
    const over = { candidates: [small, large], policy, confidence: 0.5, shadow };
    expect(step(over).content.record.streams[0]).toMatchObject({ steps: [over] });
    const plain = Buffer.from(step({ candidates: [small, large] }).content.bytes).toString();
    for (const word of ["shadow", "policy", "confidence"]) expect(plain).not.toContain(word);
    for (const wrong of [{ probabilities: [1] }, { chosen: 2 }, { probabilities: [0.5, 0.4] }])
      expect(
        refusalOf(() => step({ candidates: [small, large], shadow: { ...shadow, ...wrong } })).code,
      ).toBe("bad-choice");
  });

  test("a distribution that was not logged is null throughout, and accepted", () => {
    const unlogged = [small, large].map((each) => ({ ...each, probability: null }));
    expect(step({ candidates: unlogged }).content.record.streams[0]?.level).toBe("step");
    const alone = step({ candidates: unlogged, propensity: 0.25 }).content.record.streams[0];
    expect(alone).toMatchObject({ steps: [{ propensity: 0.25 }] });
  });
});

function makeWire() {
  const stream = {
    level: "token",
    family: "train.decoder",
    logprobKind: "sampling",
    revision: r1,
    ids: [1],
    logprobs: [-1],
  };
  return { streams: [stream] };
}
