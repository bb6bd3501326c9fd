import { expect, it } from "vitest";
import { crashStore } from "../../bench/support/store-crash.ts";

it("after 40 kills -9 of writers and collectors at random points everything acknowledged is there and complete", async () => {
  const failures: string[] = [];
  const onFailure = (what: string) => failures.push(what);
  const result = await crashStore({ kills: 40, seed: 11n, onFailure });
  expect(failures).toEqual([]);
  expect(result).toEqual({ passed: 40, failed: 0 });
});
