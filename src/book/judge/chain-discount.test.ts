import { describe, expect, it } from "vitest";
import { corridorWalks, loggedRow } from "../../../test/support/chain-world.ts";
import { chainDiscount } from "./chain-discount.ts";

describe("the discount that policies are judged by", () => {
  const single = Array.from({ length: 4 }, (_, i) =>
    loggedRow({ id: `d${i}`, chosen: i % 2, context: { prompt: "", fields: {} } }),
  );

  it("is none where no rollout has several decisions, also if one is stated", () => {
    expect([undefined, 0.9, 1, 0].map((stated) => chainDiscount(single, [], stated))).toEqual([
      ...[undefined, undefined, undefined, undefined],
    ]);
  });

  it("is the stated one for chains, by default 1, and 0 judges decisions apart", () => {
    const walks = corridorWalks(5);
    expect([undefined, 0.9, 0].map((stated) => chainDiscount(walks, [], stated))).toEqual([
      1,
      0.9,
      undefined,
    ]);
  });
});
