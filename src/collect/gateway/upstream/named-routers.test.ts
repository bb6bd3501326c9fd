import { expect, test } from "vitest";
import { type Digest, digestJson, RollbookError } from "../../../base/index.ts";
import { HttpRefusal } from "../wire/index.ts";
import type { Choose } from "./choose.ts";
import { NamedRouters } from "./named-routers.ts";

const routerAt = (n: number): Digest => digestJson("router", n);
const choose: Choose = () => {
  throw new Error("nobody asks");
};
const settled = () => new Promise(setImmediate);

function refusal(work: () => unknown): { status: number; code: string; mayRetry: boolean } {
  try {
    work();
  } catch (error) {
    if (error instanceof HttpRefusal) return seen(error);
    throw error;
  }
  throw new Error("it was not refused");
}

function seen({ status, code, headers }: HttpRefusal) {
  return { status, code, mayRetry: headers["x-should-retry"] === undefined };
}

test("a call whose router could not be read has it read again, and is told to retry", async () => {
  let isAway = true;
  let reads = 0;
  const log: string[] = [];
  const routers = new NamedRouters({
    log: (line) => log.push(line),
    async load() {
      reads++;
      if (isAway) throw new RollbookError("bucket-failed", {}, "the bucket is away.");
      return choose;
    },
  });
  const away = { status: 503, code: "bucket-failed", mayRetry: true };
  expect(await routers.ready(routerAt(1)).catch(seen)).toEqual(away);
  const notReady = { status: 503, code: "router-not-ready", mayRetry: true };
  for (const _ of [1, 2]) expect(refusal(() => routers.chooserOf(routerAt(1)))).toEqual(notReady);
  // The second call came during the read of the first call.
  expect(reads).toBe(2);
  await settled();
  expect(log).toEqual([expect.stringContaining("the bucket is away.")]);
  isAway = false;
  expect(refusal(() => routers.chooserOf(routerAt(1)))).toEqual(notReady);
  await settled();
  expect(routers.chooserOf(routerAt(1))).toBe(choose);
});

test.each(["digest-mismatch", "bad-record", "unknown-schema", "bad-seed", "not-trusted"])(
  "a router with the lasting fault %s is refused for good, until an opening tries it again",
  async (code) => {
    let reads = 0;
    const routers = new NamedRouters({
      async load() {
        if (++reads === 1) throw new RollbookError(code, {}, "the record is bad.");
        return choose;
      },
    });
    const lasting = { status: 422, code, mayRetry: false };
    expect(await routers.ready(routerAt(1)).catch(seen)).toEqual(lasting);
    expect(refusal(() => routers.chooserOf(routerAt(1)))).toEqual(lasting);
    expect(reads).toBe(1);
    await routers.ready(routerAt(1));
    expect(routers.chooserOf(routerAt(1))).toBe(choose);
  },
);

test("a router that the book does not hold yet is refused for now", async () => {
  const routers = new NamedRouters({
    load: () => Promise.reject(new RollbookError("missing-blob", {}, "it is not in the book.")),
  });
  const missing = { status: 503, code: "missing-blob", mayRetry: true };
  expect(await routers.ready(routerAt(1)).catch(seen)).toEqual(missing);
});

test("routers that open rollouts name stay, and the oldest of the others are evicted", async () => {
  const inUse = new Set([routerAt(0)]);
  const routers = new NamedRouters({ load: async () => choose, inUse: () => inUse });
  for (let n = 0; n < 300; n++) await routers.ready(routerAt(n));
  for (const n of [0, 299]) expect(routers.chooserOf(routerAt(n))).toBe(choose);
  expect(refusal(() => routers.chooserOf(routerAt(1))).code).toBe("router-not-ready");
});
