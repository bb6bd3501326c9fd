import { expect, it } from "vitest";
import { refusalOf } from "../../test/support/refusal-of.ts";
import { makeRollout, stepWire, weightsOf } from "../../test/support/shelf.ts";

const revision = { id: "router-r1", digest: weightsOf("router-r1") };
const candidates = [{ id: "a", selectable: true, reasons: [], probability: 1 }];
const step = (over: object) => ({ revision, turn: 0, candidates, chosen: 0, reward: null, ...over });
const rollout = (steps: object[], over: object = {}) =>
  makeRollout("r1", { streams: [stepWire({ steps })], ...over });

it("errors before and after, diagnostics, provenance and configs are part of what is sealed", () => {
  const plain = rollout([step({})]);
  const rich = [
    rollout([step({ before: 2, after: 1 })]),
    rollout([step({ candidates: [{ ...candidates[0], diagnostic: 0.5 }] })]),
    rollout([step({ candidates: [{ ...candidates[0], provenance: "beam" }] })]),
    rollout([step({})], { configs: { oracle: weightsOf("oracle") } }),
  ];
  const digests = [plain, ...rich].map((each) => each.content.digest);
  expect(new Set(digests).size).toBe(5);
  expect(rich[0]!.content.record.streams[0]).toMatchObject({ steps: [{ before: 2, after: 1 }] });
  expect(rich[3]!.content.record.configs).toEqual({ oracle: weightsOf("oracle") });
});

it("a record without them has the bytes it had before they existed", () => {
  expect(Buffer.from(rollout([step({})]).content.bytes).toString()).not.toMatch(
    /before|after|diagnostic|provenance|configs/,
  );
});

it.each([
  ["the step before", [step({ after: 1 }), step({ before: 1.5 })]],
  ["a forked parent", [step({ after: 1 }), step({ before: 1, after: 0 }), step({ parent: 0, before: 0 })]],
])("a step that does not begin where %s ended is refused", (_, steps) => {
  expect(refusalOf(() => rollout(steps))).toMatchObject({ code: "bad-choice" });
});

it("a fork begins where its parent ended, not where the step listed before it did", () => {
  const steps = [step({ after: 1 }), step({ before: 1, after: 0 }), step({ parent: 0, before: 1 })];
  expect(() => rollout(steps)).not.toThrow();
});

it("a config that is not a digest is refused", () => {
  expect(refusalOf(() => rollout([step({})], { configs: { oracle: "v1" } }))).toMatchObject({
    code: "bad-record",
  });
});
