import { describe, expect, test } from "vitest";
import { exampleWire } from "../../../test/support/examples.ts";
import { refusalOf } from "../../../test/support/refusal-of.ts";
import { decodeWire, seal } from "../codec/record.ts";
import { Verdict } from "./verdict.ts";

const base = decodeWire(Verdict, exampleWire(Verdict.kind), "verdict");

describe("verdicts", () => {
  test.each([
    [
      "an acceptance without observations",
      { disposition: "accepted", weightBps: 10_000, codes: [], observations: [] },
    ],
    ["an accepted duplicate", { disposition: "accepted", weightBps: 10_000 }],
    ["a normalization at full weight", { weightBps: 10_000 }],
    ["an acceptance at part of the weight", { disposition: "accepted", codes: [] }],
    ["more than the full weight", { weightBps: 10_001 }],
  ] as const)("%s is refused", (_, over) => {
    const verdict = { ...base, ...over } as unknown as Verdict;
    expect(refusalOf(() => seal(Verdict, verdict)).code).toBe("bad-record");
  });

  test("what nobody observed is unobserved, and that can be said", () => {
    const verdict = seal(Verdict, { ...base, disposition: "unobserved", codes: [], observations: [] });
    expect(verdict.record.disposition).toBe("unobserved");
  });
});
