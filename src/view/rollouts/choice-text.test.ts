import { expect, it } from "vitest";
import { choiceText } from "./choice-text.ts";

const candidate = (id: string, probability: number | null, ...reasons: string[]) => ({
  ...{ id, probability, selectable: reasons.length === 0, reasons },
});
const choice = {
  ...{ family: "router", revision: "r-1", chosen: "small", probability: 0.25, reward: null },
  candidates: [candidate("small", 0.25), candidate("large", 0.75)],
};

it("tells a draw, its reward, and why each masked candidate is out", () => {
  expect(choiceText({ ...choice, reward: 1, reason: "policy" })).toBe(
    "router chose small (probability 0.25, policy, drawn against a more probable candidate) of small 0.25, large 0.75, reward 1",
  );
  const candidates = [
    candidate("small", 1),
    candidate("large", 0, "over-price", "over-latency"),
    candidate("old", null),
  ];
  expect(choiceText({ ...choice, probability: 1, candidates })).toBe(
    "router chose small (probability 1) of small 1, large 0 (over-price, over-latency), old ?",
  );
});

it("tells the constraints that the chosen candidate breaks", () => {
  const candidates = [candidate("small", 1), candidate("large", 0, "over-price")];
  const relaxed = { reason: "constraints-relaxed", relaxed: ["over-price"], probability: 1, candidates };
  expect(choiceText({ ...choice, ...relaxed })).toBe(
    "router chose small (probability 1, constraints-relaxed, taken although over-price) of small 1, large 0 (over-price)",
  );
});

it("names no candidates if there was no other, and at most eight", () => {
  expect(choiceText({ ...choice, probability: null, candidates: [candidate("small", null)] })).toBe(
    "router chose small (probability not logged)",
  );
  const candidates = Array.from({ length: 9 }, (_, i) => candidate(`m${i}`, i === 0 ? 1 : 0));
  expect(choiceText({ ...choice, probability: 1, candidates })).toMatch(/ of m0 1, m1 0, .* m7 0, …$/);
});
