import { expect, it } from "vitest";
import { crashWriters } from "../../bench/support/store-crash.ts";

it("after 40 kills -9 at random points everything acknowledged is there, and all that is there is complete", async () => {
  const failures: string[] = [];
  const result = await crashWriters({
    kills: 40,
    seed: 11n,
    writers: 4,
    onFailure: (what) => failures.push(what),
  });
  expect(failures).toEqual([]);
  expect(result).toEqual({ passed: 40, failed: 0 });
});
