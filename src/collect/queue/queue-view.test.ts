import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { DueHeap } from "./due-heap.ts";
import { newItem } from "./item-record.ts";
import { type PlacedItem, QueueView } from "./queue-view.ts";

const STATES = ["waiting", "claimed", "done", "dead"] as const;

/** Records of a few items, with the sequences of one stream. */
const history = fc
  .array(fc.record({ item: fc.nat(4), state: fc.constantFrom(...STATES), dueMs: fc.nat(50) }), {
    maxLength: 40,
  })
  .map((steps) =>
    steps.map(
      ({ item, state, dueMs }, i): PlacedItem => ({
        ...newItem({ lane: "main", maxAttempts: 3, readyAtMs: dueMs }),
        ...{ id: `i${item}`, seq: i + 1, state, expiresAtMs: dueMs, place: item },
      }),
    ),
  );

const newestOf = (items: readonly PlacedItem[]) => [
  ...new Map(items.map((item) => [item.id, item])).values(),
];

describe("the view of a queue", () => {
  it("is the newest record of every item, in whatever order and however often it hears of them", () => {
    fc.assert(
      fc.property(history, fc.infiniteStream(fc.nat()), (items, random) => {
        const view = new QueueView<PlacedItem>();
        const shuffled = [...items, ...items].sort(() => (random.next().value! % 2 === 0 ? 1 : -1));
        for (const item of shuffled) view.apply(item);
        const newest = newestOf(items);
        for (const item of newest) expect(view.get(item.id)).toEqual(item);
        for (const state of STATES)
          expect(view.counts()[state]).toBe(newest.filter((item) => item.state === state).length);
        const ready = newest.filter(({ state, readyAtMs }) => state === "waiting" && readyAtMs <= 25);
        const line = ready.sort((a, b) => a.readyAtMs - b.readyAtMs || a.place - b.place);
        expect(view.take("main", 25, 2)).toEqual(line.slice(0, 2));
        expect(view.take("main", 25, 9)).toEqual(line.slice(2));
        const expired = newest.filter(({ state, expiresAtMs }) => state === "claimed" && expiresAtMs! < 25);
        expect(view.takeExpired(25).sort((a, b) => a.seq - b.seq)).toEqual(
          expired.sort((a, b) => a.seq - b.seq),
        );
      }),
    );
  });

  it("finds a claim that expires sooner than the one before it, at its time", () => {
    const view = new QueueView<PlacedItem>();
    const claim = (seq: number, expiresAtMs: number): PlacedItem => ({
      ...newItem({ lane: "main", maxAttempts: 3, readyAtMs: 0 }),
      ...{ id: "i", seq, state: "claimed", expiresAtMs, place: 1 },
    });
    view.apply(claim(1, 60));
    view.apply(claim(2, 20));
    expect(view.takeExpired(20)).toEqual([]);
    expect(view.takeExpired(21)).toEqual([claim(2, 20)]);
    view.offerExpired(claim(2, 20));
    expect(view.takeExpired(61)).toEqual([claim(2, 20)]);
    view.apply(claim(3, 90));
    view.apply(claim(4, 100));
    expect(view.takeExpired(95)).toEqual([]);
    expect(view.takeExpired(101)).toEqual([claim(4, 100)]);
    expect(view.takeExpired(101)).toEqual([]);
  });

  it("does not grow with heartbeats, though nobody claims", () => {
    setFlagsFromString("--expose-gc");
    const collect = runInNewContext("gc") as () => void;
    const view = new QueueView<PlacedItem>();
    const item = newItem({ lane: "main", maxAttempts: 3, readyAtMs: 0 });
    const beat = (seq: number) =>
      view.apply({
        ...item,
        ...{ id: "i", seq, state: "claimed", expiresAtMs: seq, place: 1, payloadHash: "h", write: "w" },
      });
    beat(1);
    collect();
    const before = process.memoryUsage().heapUsed;
    for (let seq = 2; seq < 300_000; seq++) beat(seq);
    collect();
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(5_000_000);
  });

  it("lists ends by their sequence once the stream has delivered them, whatever this process wrote before", () => {
    fc.assert(
      fc.property(history, fc.nat(40), fc.integer({ min: 1, max: 9 }), (items, cursor, limit) => {
        const view = new QueueView<PlacedItem>();
        for (const item of items) {
          // The view knows own writes before their delivery.
          if (item.seq % 3 === 0) view.apply(item);
          view.deliver(item);
        }
        const ends = newestOf(items)
          .filter(({ state, seq }) => (state === "done" || state === "dead") && seq > cursor)
          .sort((a, b) => a.seq - b.seq);
        expect(view.settledAfter(cursor, limit)).toEqual(ends.slice(0, limit));
      }),
    );
  });
});

describe("the heap", () => {
  it("gives entries by time, then by place", () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.nat(9), fc.nat(9))), (pairs) => {
        const heap = new DueHeap();
        for (const [dueMs, place] of pairs) heap.push({ id: "i", dueMs, place, seq: 1 });
        const sorted = [...pairs].sort(([a, x], [b, y]) => a - b || x - y);
        expect(pairs.map(() => heap.pop()!).map(({ dueMs, place }) => [dueMs, place])).toEqual(sorted);
        expect(heap.pop()).toBeUndefined();
      }),
    );
  });
});
