import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { digestJson } from "../../../base/digest.ts";
import { parseId } from "../../../base/ids.ts";
import { TokenBranches } from "./token-branches.ts";

const revision = { id: parseId("r1"), digest: digestJson("test", 1) };
const call = (number: number, prompt: number[], ...samples: number[][]) => ({
  call: number,
  revision,
  prompt,
  samples: samples.map((ids) => ({ ids, logprobs: ids.map((id) => -id / 10) })),
});

describe("token branches", () => {
  it("a prompt that repeats everything continues the branch, and the shared prefix trains once", () => {
    const tokens = new TokenBranches();
    expect(tokens.add(call(0, [1, 2], [3, 4]))).toBe("CLEAN");
    expect(tokens.add(call(1, [1, 2, 3, 4, 5], [6]))).toBe("CLEAN");
    expect(tokens.branches).toHaveLength(1);
    expect(tokens.branches[0]).toMatchObject({
      ids: [1, 2, 3, 4, 5, 6],
      mask: [0, 0, 1, 1, 0, 1],
      logprobs: [0, 0, -0.3, -0.4, 0, -0.6],
      segments: [
        { start: 2, end: 4, call: 0 },
        { start: 5, end: 6, call: 1 },
      ],
    });
  });

  it("a short drift in the tail of the last sample is replaced by what was read, untrained", () => {
    const tokens = new TokenBranches(2);
    tokens.add(call(0, [1, 2], [3, 4, 5]));
    expect(tokens.add(call(1, [1, 2, 3, 9, 9, 7], [8]))).toBe("REALIGN");
    expect(tokens.branches[0]).toMatchObject({
      ids: [1, 2, 3, 9, 9, 7, 8],
      mask: [0, 0, 1, 0, 0, 0, 1],
      segments: [
        { start: 2, end: 3, call: 0 },
        { start: 6, end: 7, call: 1 },
      ],
    });
    expect(tokens.realigned).toBe(2);
  });

  it.each([
    ["a drift that is too long", [1, 2, 3, 9, 9], 1],
    ["a drift before the last sample", [1, 8, 3, 4, 5, 6], 16],
    ["the same prompt again", [1, 2], 16],
    ["another prompt", [7], 16],
  ])("%s forks: nothing that was sampled is lost", (_what, prompt, realign) => {
    const tokens = new TokenBranches(realign);
    tokens.add(call(0, [1, 2], [3, 4, 5]));
    expect(tokens.add(call(1, prompt, [6]))).toBe("FORK");
    expect(tokens.branches.map(({ mask }) => mask.filter((each) => each === 1).length)).toEqual([3, 1]);
    expect(tokens.realigned).toBe(0);
  });

  it("several samples of one prompt are branches of it", () => {
    const tokens = new TokenBranches();
    tokens.add(call(0, [1, 2], [3], [4, 5]));
    expect(tokens.branches.map(({ ids }) => ids)).toEqual([
      [1, 2, 3],
      [1, 2, 4, 5],
    ]);
  });

  it("every sampled token trains exactly once, but for those given up by realignment", () => {
    const ids = fc.array(fc.nat(3), { maxLength: 6 });
    const sample = fc.array(fc.nat(3), { minLength: 1, maxLength: 4 });
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.boolean(), ids, sample), { maxLength: 8 }),
        fc.nat(4),
        (turns, realign) => {
          const tokens = new TokenBranches(realign);
          let sampled = 0;
          for (const [i, [goesOn, extra, sampledIds]] of turns.entries()) {
            const prompt = goesOn ? [...(tokens.branches.at(-1)?.ids ?? []), ...extra] : extra;
            tokens.add(call(i, prompt, sampledIds));
            sampled += sampledIds.length;
            const last = tokens.branches.find(({ segments }) => segments.at(-1)!.call === i)!;
            // With any earlier calls, the model read exactly this prompt.
            expect(last.ids).toEqual([...prompt, ...sampledIds]);
          }
          const trained = tokens.branches.flatMap(({ mask }) => mask).filter((each) => each === 1).length;
          expect(trained + tokens.realigned).toBe(sampled);
          for (const { ids: all, mask, logprobs, turns: columns } of tokens.branches)
            expect([mask.length, logprobs.length, columns.length]).toEqual([
              all.length,
              all.length,
              all.length,
            ]);
        },
      ),
    );
  });
});
