import { expect, it } from "vitest";
import { sayDistance, standardErrors } from "./family-summary.ts";

it("an observed mean is said to be within chance, or not, by its standard errors", () => {
  const observed = { count: 100, mean: 0.6, interval: [0.6 - 0.196, 0.6 + 0.196] as const };
  expect(standardErrors(observed, 0.35)).toBeCloseTo(2.5, 3);
  expect(sayDistance(2.5)).toBe(
    "2.5 standard errors above the exact value of the behaviour: within chance\n",
  );
  expect(sayDistance(-3.2)).toContain(
    "3.2 standard errors below the exact value of the behaviour: more than",
  );
  expect(standardErrors({ ...observed, interval: [0.6, 0.6] }, 0.5)).toBeNull();
  expect(standardErrors({ count: 1, mean: 1, interval: null }, 0.5)).toBeNull();
  expect(standardErrors({ count: 30, mean: 0.8, interval: [0.7996, 0.8004] }, 0.7)).not.toBeNull();
  expect(standardErrors({ count: 29, mean: 0.8, interval: [0.7996, 0.8004] }, 0.7)).toBeNull();
});
