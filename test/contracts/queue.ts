/** The contract of every WorkQueue; each driver's test runs it. The clock advances only when the test moves it. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Clock, manualClock } from "../../src/base/clock.ts";
import { type Digest, digestJson } from "../../src/base/digest.ts";
import {
  type Claim,
  MAX_PAYLOAD_BYTES,
  type QueueItem,
  type WorkQueue,
} from "../../src/collect/queue/queue.ts";
import { rejectionOf } from "../support/refusal-of.ts";

/** Opens an empty queue whose claims live 20 s. */
export type OpenQueue = (clock: Clock) => Promise<WorkQueue>;

const TTL_MS = 20_000;
const result = (name: string): Digest => digestJson("test.result", name);
const item = (id: string, more: Partial<QueueItem> = {}): QueueItem => ({
  id,
  payload: { task: id },
  ...more,
});

const codeOf = async (promise: Promise<unknown>) => (await rejectionOf(promise)).code;

/** `sequences` is the number of operation sequences that are drawn. It is smaller where another server runs the same
 *  driver. */
export function describeQueue(name: string, open: OpenQueue, { sequences = 40 } = {}): void {
  /** A queue with the items a, b, c … at time 1 000 000, closed when the test ends. */
  const started = async (items: readonly QueueItem[]) => {
    const clock = manualClock(1_000_000);
    const queue = await open(clock);
    await queue.enqueue(items);
    const claimOne = async (worker = "w1"): Promise<Claim> => {
      const [claim] = await queue.claim(worker, 1);
      if (claim === undefined) throw new Error("nothing to claim");
      return claim;
    };
    return { clock, queue, claimOne, close: () => queue.close() };
  };

  describe(`${name}: what is queued`, () => {
    it("adds an item once, however often it is enqueued, also after it is done", async () => {
      const { queue, claimOne, close } = await started([]);
      expect(await queue.enqueue([item("a"), item("b"), item("a")])).toEqual({ added: 2, known: 1 });
      expect(await queue.enqueue([item("b"), item("c")])).toEqual({ added: 1, known: 1 });
      await queue.complete(await claimOne(), result("a"));
      expect(await queue.enqueue([item("a")])).toEqual({ added: 0, known: 1 });
      expect(await queue.counts()).toEqual({ waiting: 2, claimed: 0, done: 1, dead: 0 });
      await close();
    });

    it("refuses one id with two payloads, and adds nothing of that call", async () => {
      const { queue, close } = await started([item("a")]);
      const other = { id: "a", payload: { task: "other" } };
      expect(await codeOf(queue.enqueue([item("b"), other]))).toBe("item-conflict");
      expect(await codeOf(queue.enqueue([item("c"), { ...other, id: "c" }]))).toBe("item-conflict");
      expect(await queue.counts()).toEqual({ waiting: 1, claimed: 0, done: 0, dead: 0 });
      await close();
    });

    it("refuses bad ids, payloads that JSON cannot carry or that are too large, and no attempts", async () => {
      const { queue, close } = await started([]);
      const refusal = (bad: QueueItem) => codeOf(queue.enqueue([bad]));
      expect(await refusal(item("../a"))).toBe("bad-id");
      expect(await refusal(item("a\0b"))).toBe("bad-id");
      expect(await refusal({ id: "a", payload: Number.NaN })).toBe("non-finite-number");
      expect(await refusal({ id: "a", payload: "x".repeat(MAX_PAYLOAD_BYTES) })).toBe("payload-too-large");
      expect(await refusal(item("a", { maxAttempts: 0 }))).toBe("bad-item");
      expect(await codeOf(queue.claim("w/1", 1))).toBe("bad-id");
      await close();
    });

    it("hands payloads over as they were, NUL and keys like __proto__ included", async () => {
      const payload = JSON.parse('{"a\\u0000":"\\u0000","__proto__":{"x":1},"n":[1e300,-0.5,null,true]}');
      const { claimOne, close } = await started([{ id: "a", payload }]);
      expect(JSON.stringify(await claimOne().then((claim) => claim.payload))).toBe(
        '{"__proto__":{"x":1},"a\\u0000":"\\u0000","n":[1e+300,-0.5,null,true]}',
      );
      await close();
    });
  });

  describe(`${name}: claims`, () => {
    it("gives the oldest first, at most as many as asked, each to one worker", async () => {
      const { queue, close } = await started(["a", "b", "c", "d", "e"].map((id) => item(id)));
      const [first, second, third] = [
        await queue.claim("w1", 2),
        await queue.claim("w2", 9),
        await queue.claim("w3", 9),
      ];
      expect(first.map((claim) => claim.item)).toEqual(["a", "b"]);
      expect(second.map((claim) => claim.item)).toEqual(["c", "d", "e"]);
      expect(third).toEqual([]);
      expect(first[0]).toMatchObject({
        worker: "w1",
        attempt: 1,
        expiresAtMs: 1_020_000,
        payload: { task: "a" },
      });
      await close();
    });

    it("keeps lanes apart", async () => {
      const { queue, close } = await started([item("a"), item("b", { lane: "other" }), item("c")]);
      expect((await queue.claim("w1", 9, { lane: "other" })).map((claim) => claim.item)).toEqual(["b"]);
      expect((await queue.claim("w1", 9)).map((claim) => claim.item)).toEqual(["a", "c"]);
      expect(await queue.claim("w1", 9, { lane: "nobody" })).toEqual([]);
      await close();
    });

    it("gives an item by name, if it is ready and unclaimed", async () => {
      const { clock, queue, close } = await started([item("a"), item("b", { notBeforeMs: 1_000_001 })]);
      const named = async (id: string) =>
        (await queue.claim("w1", 9, { item: id })).map((claim) => claim.item);
      expect(await named("b")).toEqual([]);
      clock.advance(1);
      expect(await named("b")).toEqual(["b"]);
      expect(await named("b")).toEqual([]);
      expect(await named("stranger")).toEqual([]);
      clock.advance(TTL_MS + 1);
      expect(await named("b")).toEqual(["b"]);
      await close();
    });

    it("waits for notBeforeMs", async () => {
      const { clock, queue, close } = await started([item("a", { notBeforeMs: 1_000_005 })]);
      clock.advance(4);
      expect(await queue.claim("w1", 1)).toEqual([]);
      clock.advance(1);
      expect(await queue.claim("w1", 1)).toHaveLength(1);
      await close();
    });

    it("holds a claim at exactly its time to live, and not a millisecond longer", async () => {
      const { clock, queue, claimOne, close } = await started([item("a")]);
      const old = await claimOne("w1");
      clock.advance(TTL_MS);
      expect(await queue.claim("w2", 1)).toEqual([]);
      clock.advance(1);
      const fresh = await claimOne("w2");
      expect(fresh).toMatchObject({ item: "a", attempt: 2 });
      expect(fresh.token).toBeGreaterThan(old.token);
      await close();
    });

    it("keeps a claim alive by heartbeats, and names the lost ones", async () => {
      const { clock, queue, close } = await started([item("a"), item("b")]);
      const [a, b] = await queue.claim("w1", 2);
      clock.advance(TTL_MS);
      expect(await queue.heartbeat([a!])).toEqual([]);
      clock.advance(1);
      expect(await queue.heartbeat([a!, b!, { item: "stranger", token: 1 }])).toEqual([
        b,
        { item: "stranger", token: 1 },
      ]);
      expect((await queue.claim("w2", 2)).map((claim) => claim.item)).toEqual(["b"]);
      clock.advance(TTL_MS);
      expect(await queue.complete(a!, result("a"))).toEqual({ outcome: "done" });
      await close();
    });

    it("gives released items to the next worker without counting the attempt, under a greater token", async () => {
      const { queue, claimOne, close } = await started([item("a", { maxAttempts: 1 })]);
      const old = await claimOne("w1");
      await queue.release([old, { item: "stranger", token: 1 }]);
      const fresh = await claimOne("w2");
      expect(fresh.attempt).toBe(1);
      expect(fresh.token).toBeGreaterThan(old.token);
      // The claim of the first worker has no effect any more.
      await queue.release([old]);
      expect(await queue.state("a")).toMatchObject({ state: "claimed", worker: "w2" });
      await close();
    });
  });

  describe(`${name}: ends`, () => {
    it("completes once; the same result again is repeated, another is a conflict", async () => {
      const { queue, claimOne, close } = await started([item("a")]);
      const claim = await claimOne();
      expect(await queue.complete(claim, result("x"))).toEqual({ outcome: "done" });
      expect(await queue.complete(claim, result("x"))).toEqual({ outcome: "repeated" });
      expect(await queue.complete(claim, result("y"))).toEqual({ outcome: "conflict", result: result("x") });
      expect(await queue.state("a")).toEqual({
        lane: "main",
        state: "done",
        attempt: 1,
        result: result("x"),
      });
      expect(await queue.claim("w2", 1)).toEqual([]);
      await close();
    });

    it("does not let a lost claim complete or fail, whether taken over or not", async () => {
      const { clock, queue, claimOne, close } = await started([item("a")]);
      const old = await claimOne("w1");
      clock.advance(TTL_MS + 1);
      expect(await queue.complete(old, result("x"))).toEqual({ outcome: "expired" });
      expect(await queue.fail(old, { message: "late", retryAfterMs: 0 })).toEqual({ outcome: "expired" });
      const fresh = await claimOne("w2");
      expect(await queue.complete(old, result("x"))).toEqual({ outcome: "expired" });
      expect(await queue.complete(fresh, result("y"))).toEqual({ outcome: "done" });
      expect(await queue.complete(old, result("y"))).toEqual({ outcome: "repeated" });
      await close();
    });

    it("takes a claim that names its worker from no other", async () => {
      const { queue, claimOne, close } = await started([item("a")]);
      const own = await claimOne("w1");
      const foreign = { ...own, worker: "w2" };
      expect(await queue.heartbeat([foreign])).toEqual([foreign]);
      expect(await queue.complete(foreign, result("x"))).toEqual({ outcome: "expired" });
      expect(await queue.fail(foreign, { message: "mine" })).toEqual({ outcome: "expired" });
      await queue.release([foreign]);
      expect(await queue.complete(own, result("y"))).toEqual({ outcome: "done" });
      await close();
    });

    it("refuses to end what was never queued", async () => {
      const { queue, close } = await started([]);
      const stranger = { item: "stranger", token: 1 };
      expect(await codeOf(queue.complete(stranger, result("x")))).toBe("unknown-item");
      expect(await codeOf(queue.fail(stranger, { message: "no" }))).toBe("unknown-item");
      expect(await queue.state("stranger")).toBeUndefined();
      expect(await codeOf(queue.complete(stranger, "done" as Digest))).toBe("bad-digest");
      await close();
    });

    it("backs a failed item off, and others go first", async () => {
      const { clock, queue, claimOne, close } = await started([item("a"), item("b")]);
      const claim = await claimOne();
      expect(await queue.fail(claim, { message: "busy", retryAfterMs: 500 })).toEqual({
        outcome: "requeued",
        attempt: 1,
      });
      expect(await queue.state("a")).toEqual({ lane: "main", state: "waiting", attempt: 1 });
      expect((await queue.claim("w1", 9)).map((each) => each.item)).toEqual(["b"]);
      clock.advance(499);
      expect(await queue.claim("w1", 9)).toEqual([]);
      clock.advance(1);
      expect(await claimOne()).toMatchObject({ item: "a", attempt: 2 });
      await close();
    });

    it("sets an item aside when its attempts are spent, by failures and by expiry alike, with the reason", async () => {
      const { clock, queue, claimOne, close } = await started([item("a", { maxAttempts: 2 })]);
      await queue.fail(await claimOne(), { message: "first", retryAfterMs: 0 });
      await claimOne("w7");
      clock.advance(TTL_MS + 1);
      expect(await queue.claim("w2", 1)).toEqual([]);
      expect(await queue.state("a")).toEqual({
        lane: "main",
        state: "dead",
        attempt: 2,
        reason: "the claim of w7 expired on attempt 2",
      });
      expect(await queue.counts()).toEqual({ waiting: 0, claimed: 0, done: 0, dead: 1 });
      await close();
    });

    it("sets aside at once what is not to be tried again", async () => {
      const { queue, claimOne, close } = await started([item("a")]);
      expect(await queue.fail(await claimOne(), { message: "bad task \0" })).toEqual({ outcome: "dead" });
      expect(await queue.state("a")).toMatchObject({ state: "dead", attempt: 1, reason: "bad task \ufffd" });
      await close();
    });

    it("revives the dead with all their attempts, and old claims stay fenced off", async () => {
      const { queue, claimOne, close } = await started([item("a", { maxAttempts: 1 }), item("b")]);
      const old = await claimOne();
      await queue.fail(old, { message: "no", retryAfterMs: 0 });
      expect(await queue.revive(["a", "b", "a"])).toBe(1);
      expect(await codeOf(queue.revive(["stranger"]))).toBe("unknown-item");
      const [b, a] = await queue.claim("w1", 2);
      expect([b!.item, a!.item].sort()).toEqual(["a", "b"]);
      const fresh = [a!, b!].find((claim) => claim.item === "a")!;
      expect(fresh.attempt).toBe(1);
      expect(fresh.token).toBeGreaterThan(old.token);
      await close();
    });

    it("tells of ends in their order, from any point on, also past a revival", async () => {
      const { queue, close } = await started([item("a"), item("b"), item("c")]);
      const [a, b, c] = await queue.claim("w1", 3);
      await queue.complete(b!, result("b"));
      await queue.fail(a!, { message: "no" });
      const ends = await queue.settled(0, 10);
      expect(ends).toMatchObject([
        { item: "b", state: "done", result: result("b") },
        { item: "a", state: "dead", reason: "no" },
      ]);
      expect(await queue.settled(ends[0]!.cursor, 10)).toEqual([ends[1]]);
      expect(await queue.settled(0, 1)).toEqual([ends[0]]);
      // Another end never gets the cursor of an end that was undone.
      await queue.revive(["a"]);
      await queue.complete(c!, result("c"));
      expect(await queue.settled(ends[1]!.cursor, 10)).toMatchObject([{ item: "c" }]);
      await close();
    });
  });

  describe(`${name}: many at once`, () => {
    it("tells a watch of what happened since it last looked, and of nothing else", async () => {
      const { queue, close } = await started([]);
      const watch = queue.watch();
      expect(await watch.changed(1)).toBe(false);
      await queue.claim("w1", 1);
      expect(await watch.changed(1)).toBe(false);
      await queue.enqueue([item("a")]);
      expect(await watch.changed(1)).toBe(true);
      const waiting = watch.changed(60_000);
      await queue.claim("w1", 1);
      expect(await waiting).toBe(true);
      await close();
    });

    it("gives no item twice to workers that ask together, and completes each once", async () => {
      const ids = Array.from({ length: 100 }, (_, i) => `i${i}`);
      const { queue, close } = await started(ids.map((id) => item(id)));
      const claims = (
        await Promise.all(Array.from({ length: 30 }, (_, w) => queue.claim(`w${w}`, 1 + (w % 7))))
      ).flat();
      expect(claims.map((claim) => claim.item).sort()).toEqual([...ids].sort());
      const ends = await Promise.all(
        [...claims, ...claims].map((claim) => queue.complete(claim, result(claim.item))),
      );
      expect(ends.filter(({ outcome }) => outcome === "done")).toHaveLength(100);
      expect(ends.filter(({ outcome }) => outcome === "repeated")).toHaveLength(100);
      await close();
    });

    it("under any sequence of operations, items are neither lost nor ended twice, and a token never returns", async () => {
      await fc.assert(
        fc.asyncProperty(anySteps, async (steps) => {
          const clock = manualClock(0);
          await live([{ clock, queue: await open(clock) }], steps);
        }),
        { numRuns: sequences },
      );
    });
  });
}

/** A process that has the queue open, and its own clock. */
export interface QueueMachine {
  readonly queue: WorkQueue;
  readonly clock: ReturnType<typeof manualClock>;
}

/** `at` is the index of the machine. Time passes on all machines. */
type Step =
  | { do: "enqueue" | "claim" | "complete" | "fail" | "release" | "heartbeat"; pick: number; at: number }
  | { do: "advance"; byMs: number };

const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    do: fc.constantFrom("enqueue", "claim", "complete", "fail", "release", "heartbeat"),
    pick: fc.nat(20),
    at: fc.nat(5),
  }),
  fc.record({ do: fc.constant("advance" as const), byMs: fc.constantFrom(1, 9_999, TTL_MS, TTL_MS + 1) }),
);

export const anySteps = fc.array(step, { maxLength: 40 });

/** Applies the steps, with every claim ever given available to later steps. Checks the invariants after each step.
 *  Closes the queue. */
export async function live(machines: readonly QueueMachine[], steps: readonly Step[]): Promise<void> {
  const claims: Claim[] = [];
  const tokens = new Map<string, number>();
  const ids = new Set<string>();
  const ended = new Map<string, Digest>();
  for (const [i, each] of steps.entries()) {
    if (each.do === "advance") {
      for (const { clock } of machines) clock.advance(each.byMs);
      continue;
    }
    const { queue } = machines[each.at % machines.length]!;
    const claim = claims[each.pick % Math.max(1, claims.length)];
    if (each.do === "enqueue") {
      ids.add(`i${each.pick}`);
      await queue.enqueue([item(`i${each.pick}`, { maxAttempts: 1 + (each.pick % 3) })]);
    } else if (each.do === "claim") {
      for (const given of await queue.claim(`w${i}`, 1 + (each.pick % 4))) {
        expect(given.token).toBeGreaterThan(tokens.get(given.item) ?? 0);
        expect(ended.has(given.item)).toBe(false);
        tokens.set(given.item, given.token);
        claims.push(given);
      }
    } else if (claim !== undefined) {
      const isLatest = tokens.get(claim.item) === claim.token;
      if (each.do === "complete") {
        const { outcome } = await queue.complete(claim, result(`${i}`));
        if (outcome === "done") {
          expect(isLatest).toBe(true);
          expect(ended.has(claim.item)).toBe(false);
          ended.set(claim.item, result(`${i}`));
        }
      } else if (each.do === "fail") {
        const { outcome } = await queue.fail(claim, { message: "no", retryAfterMs: each.pick * 1000 });
        if (outcome !== "expired") expect(isLatest).toBe(true);
      } else if (each.do === "release") await queue.release([claim]);
      else if ((await queue.heartbeat([claim])).length === 0) expect(isLatest).toBe(true);
    }
    const counts = await queue.counts();
    expect(counts.waiting + counts.claimed + counts.done + counts.dead).toBe(ids.size);
    expect(counts.done).toBe(ended.size);
  }
  for (const { queue } of machines) {
    await queue.counts();
    const ends = await queue.settled(0, 1000);
    expect(new Set(ends.map((end) => end.item)).size).toBe(ends.length);
    for (const end of ends) if (end.state === "done") expect(end.result).toBe(ended.get(end.item));
    await queue.close();
  }
}
