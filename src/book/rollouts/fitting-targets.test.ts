import { expect, it } from "vitest";
import { makeRevision, makeRollout } from "../../../test/support/shelf.ts";
import type { PolicyRevision } from "../../contract/index.ts";
import { FRESHNESS_PROFILES } from "../../keep/admit/index.ts";
import { FittingTargets } from "./fitting-targets.ts";

/** Revisions a and b have no number, so that nothing connects them; 1 and 2 are a chain. */
const [a, b, one, two] = [
  makeRevision("a", { number: undefined, producedAtMs: 0 }).record,
  makeRevision("b", { number: undefined, producedAtMs: 0 }).record,
  makeRevision("r1", { number: 1n, producedAtMs: 1000 }).record,
  makeRevision("r2", { number: 2n, producedAtMs: 2000 }).record,
];

function found(target: PolicyRevision, rollouts: readonly [by: PolicyRevision, isAccepted: boolean][]) {
  const known = [a, b, one, two];
  const targets = new FittingTargets({
    ...{ target, budgets: FRESHNESS_PROFILES.default },
    revision: ({ id }) => known.find((each) => each.id === id),
  });
  for (const [{ id, digest }, isAccepted] of rollouts) {
    const { content } = makeRollout("r", {}, { revision: { id, digest } });
    targets.see(content.record, { isAccepted });
  }
  return targets.found();
}

it("is one revision, where it accepts the rejected and the accepted rollouts", () => {
  expect(
    found(one, [
      [one, true],
      [two, false],
      [two, false],
    ]),
  ).toEqual([{ revision: "r2", rollouts: 2, fitsAll: true }]);
});

it("is each policy for its own rollouts, most first, where nothing connects them", () => {
  const own = { fitsAll: false };
  expect(
    found(one, [
      [one, true],
      [a, false],
      [b, false],
      [b, false],
    ]),
  ).toEqual([
    { ...own, revision: "b", rollouts: 2 },
    { ...own, revision: "a", rollouts: 1 },
  ]);
});

it("is none for rollouts that are only too far behind", () => {
  const far = makeRevision("r9", { number: 9n, producedAtMs: 9000 }).record;
  expect(found(far, [[one, false]])).toEqual([]);
});
