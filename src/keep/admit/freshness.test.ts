import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { refusalOf } from "../../../test/support/refusal-of.ts";
import { FAMILY, makeRevision, makeRollout, weightsOf } from "../../../test/support/shelf.ts";
import type { PolicyRevision } from "../../contract/index.ts";
import { beyondTarget, explainFreshness } from "./explain-freshness.ts";
import {
  type Budget,
  CLOCK_SKEW_MS,
  checkFreshness,
  FRESHNESS_PROFILES,
  type FreshnessBudgets,
} from "./freshness.ts";

/** Revision n of the family, produced at 1 000 · n ms. */
const revision = (n: number, over: Partial<PolicyRevision> = {}) =>
  makeRevision(`r${n}`, { number: BigInt(n), producedAtMs: 1000 * n, ...over }).record;
const keyOf = ({ id, digest }: PolicyRevision) => ({ id, digest });

interface Checked {
  target: PolicyRevision;
  sources: PolicyRevision[];
  budgets?: FreshnessBudgets;
  submittedAtMs?: number;
  known?: PolicyRevision[];
}

/** A rollout that ended at 5 000 ms, sampled by `sources`, to check against `target`. */
function requestOf(options: Checked) {
  const { target, sources, budgets = FRESHNESS_PROFILES.default, submittedAtMs = 5000 } = options;
  const segments = sources.map((source, i) => ({ start: i, end: i + 1, revision: keyOf(source) }));
  const column = (value: number) => sources.map(() => value);
  const { content, envelope } = makeRollout(
    "r",
    { envelope: { worker: "w", startedAtMs: 1, endedAtMs: 5000 } },
    {
      revision: undefined,
      segments,
      ids: column(1),
      logprobs: column(-1),
      mask: column(1),
      rewards: column(0),
    },
  );
  const known = options.known ?? sources;
  return {
    content: content.record,
    envelope: envelope.record,
    target,
    revision: (key: { id: string }) => known.find((each) => each.id === key.id),
    submittedAtMs,
    budgets,
  };
}

const check = (options: Checked) => checkFreshness(requestOf(options));

const outcome = (options: Parameters<typeof check>[0]) => check(options).outcome;

describe("drift", () => {
  it.each([
    [0, "accepted-exact"],
    [1, "accepted-off-policy"],
    [3, "accepted-off-policy"],
    [4, "quarantined"],
    [5, "quarantined"],
    [6, "discarded"],
  ])("of %i revisions is %s under the default budgets", (drift, expected) => {
    expect(outcome({ target: revision(10), sources: [revision(10 - drift)] })).toBe(expected);
  });

  it("is recorded with both budgets, and the message says why", () => {
    const { signals, message } = check({ target: revision(10), sources: [revision(6)] });
    expect(signals[0]).toEqual({
      name: "drift",
      observed: 4,
      acceptBudget: 3,
      quarantineBudget: 5,
      outcome: "quarantined",
    });
    expect(message).toBe("quarantined; drift 4 (accepts 3, quarantines 5)");
  });

  it("is explained by the name of the policy: behind the target, newer than it, or unknown", () => {
    const why = (source: PolicyRevision, known = [source]) => {
      const request = requestOf({ target: revision(10), sources: [source], known });
      return [explainFreshness(checkFreshness(request), request), beyondTarget(request).map(({ id }) => id)];
    };
    expect(why(revision(6))).toEqual([
      "its policy r6 is 4 revisions behind the target (accepted up to 3, quarantined up to 5)",
      [],
    ]);
    expect(why(revision(11))).toEqual(["its policy r11 is 1 revision newer than the target", ["r11"]]);
    expect(why(revision(9, { producedAtMs: 10_500 }))).toEqual([
      "its policy r9 was made 0.5 s after the target",
      ["r9"],
    ]);
    expect(why(revision(9), [])).toEqual([
      expect.stringMatching(/^the distance of its policy r9 from the target is unknown: /),
      ["r9"],
    ]);
    expect(why(revision(9))).toEqual(["", []]);
  });

  it("is that of the source furthest off, where a hot swap left several", () => {
    const checked = check({ target: revision(10), sources: [revision(10), revision(6), revision(9)] });
    expect(checked.outcome).toBe("quarantined");
    expect(checked.signals[0]!.observed).toBe(4);
    expect(outcome({ target: revision(10), sources: [revision(10), revision(9)] })).toBe(
      "accepted-off-policy",
    );
  });

  it("exact means the same weights, not the same name or number", () => {
    const swapped = revision(10, { digest: weightsOf("other") });
    expect(outcome({ target: revision(10), sources: [swapped] })).toBe("accepted-off-policy");
  });
});

describe("what is discarded whatever the budgets", () => {
  const wide = { accept: 1e9, quarantine: 1e9 };
  const budgets = { drift: wide, policyAgeMs: wide, rolloutAgeMs: wide };

  it("a source revision ahead of the target", () => {
    expect(outcome({ target: revision(10), sources: [revision(11, { producedAtMs: 1 })], budgets })).toBe(
      "discarded",
    );
  });

  it("a source made after the target", () => {
    expect(outcome({ target: revision(10), sources: [revision(9, { producedAtMs: 10_001 })], budgets })).toBe(
      "discarded",
    );
    expect(
      outcome({ target: revision(10), sources: [revision(9, { producedAtMs: 10_001 })], budgets: {} }),
    ).toBe("discarded");
  });

  it("a rollout that ended further after its submission than clocks disagree, even an exact one", () => {
    const target = revision(10);
    const at = (aheadMs: number, clockSkewMs?: Budget) =>
      check({
        ...{ target, sources: [target], submittedAtMs: 5000 - aheadMs },
        budgets: clockSkewMs === undefined ? budgets : { ...budgets, clockSkewMs },
      });
    expect(at(0).outcome).toBe("accepted-exact");
    expect(at(1).outcome).toBe("accepted-exact");
    expect(at(CLOCK_SKEW_MS).outcome).toBe("accepted-exact");
    expect(at(CLOCK_SKEW_MS + 1)).toMatchObject({
      outcome: "discarded",
      message: "discarded; clock-skew-ms 60001 (accepts 60000, quarantines 60000)",
    });
    expect(at(1, { accept: 0, quarantine: 0 }).outcome).toBe("discarded");
    expect(at(150, { accept: 100, quarantine: 200 }).outcome).toBe("quarantined");
    expect(at(7).signals).toContainEqual({
      name: "clock-skew-ms",
      observed: 7,
      acceptBudget: 60_000,
      quarantineBudget: 60_000,
      outcome: "accepted-exact",
    });
  });

  it("under the psionic profile, anything ahead of its submission", () => {
    const target = revision(10);
    const budgets = FRESHNESS_PROFILES.psionic;
    expect(outcome({ target, sources: [target], budgets, submittedAtMs: 4999 })).toBe("discarded");
  });

  it("a mismatch that no budget measures: no numbers, no record, no budget", () => {
    const target = revision(10);
    const unnumbered = makeRevision("r9", { producedAtMs: 9000 }).record;
    expect(outcome({ target, sources: [unnumbered] })).toBe("discarded");
    expect(outcome({ target, sources: [revision(9)], budgets: {} })).toBe("discarded");
    expect(outcome({ target, sources: [revision(9)], known: [], budgets })).toBe("discarded");
    const renamed = revision(9, { digest: weightsOf("other") });
    expect(outcome({ target, sources: [revision(9)], known: [renamed], budgets })).toBe("discarded");
    // An age budget measures sources that have no number.
    expect(outcome({ target, sources: [unnumbered], budgets: { policyAgeMs: wide } })).toBe(
      "accepted-off-policy",
    );
  });
});

describe("ages", () => {
  it.each([
    [30_000, "accepted-exact"],
    [30_001, "quarantined"],
    [60_000, "quarantined"],
    [60_001, "discarded"],
  ])(
    "a rollout of %i ms is %s under the psionic profile, and always exact under the default",
    (age, expected) => {
      const at = { target: revision(10), sources: [revision(10)], submittedAtMs: 5000 + age };
      expect(outcome({ ...at, budgets: FRESHNESS_PROFILES.psionic })).toBe(expected);
      expect(outcome(at)).toBe("accepted-exact");
    },
  );

  it("a policy age is measured from target to source", () => {
    const budgets = { drift: { accept: 9, quarantine: 9 }, policyAgeMs: { accept: 999, quarantine: 1000 } };
    expect(outcome({ target: revision(10), sources: [revision(9)], budgets })).toBe("quarantined");
    expect(outcome({ target: revision(10), sources: [revision(8)], budgets })).toBe("discarded");
  });

  it("a signal without a budget is recorded and decides nothing", () => {
    const { signals } = check({ target: revision(10), sources: [revision(10)], submittedAtMs: 1e9 });
    expect(signals.slice(1)).toMatchObject([
      { name: "policy-age-ms", observed: 0, acceptBudget: null, outcome: "unknown" },
      { name: "rollout-age-ms", observed: 999_995_000, acceptBudget: null, outcome: "unknown" },
      { name: "clock-skew-ms", observed: 0 },
    ]);
  });
});

it("a rollout without a stream of the family is unknown, not accepted", () => {
  const target = makeRevision("r1", { family: "other.family" as never, number: 1n }).record;
  expect(check({ target, sources: [revision(1)] })).toMatchObject({
    outcome: "unknown",
    message: "holds no stream of other.family",
  });
  expect(FAMILY).not.toBe("other.family");
});

it.each([
  { accept: -1, quarantine: 5 },
  { accept: 6, quarantine: 5 },
  { accept: 0, quarantine: Number.POSITIVE_INFINITY },
  { accept: Number.NaN, quarantine: 5 },
])("the budget %j is refused", (drift) => {
  const target = revision(1);
  expect(refusalOf(() => check({ target, sources: [target], budgets: { drift } })).code).toBe("bad-budget");
});

it("a larger budget never gives a harsher outcome", () => {
  const order = ["accepted-exact", "accepted-off-policy", "quarantined", "discarded"];
  fc.assert(
    fc.property(
      fc.record({
        drift: fc.nat(12),
        age: fc.nat(50),
        accept: fc.nat(12),
        more: fc.nat(12),
        wider: fc.nat(12),
      }),
      ({ drift, age, accept, more, wider }) => {
        const at = { target: revision(12), sources: [revision(12 - drift)], submittedAtMs: 5000 + age };
        const with_ = (extra: number) => {
          const budget = { accept: accept + extra, quarantine: accept + extra + more };
          return order.indexOf(outcome({ ...at, budgets: { drift: budget, rolloutAgeMs: budget } }));
        };
        expect(with_(wider)).toBeLessThanOrEqual(with_(0));
      },
    ),
    { numRuns: 100 },
  );
});
