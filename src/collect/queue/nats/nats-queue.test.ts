import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import * as natsServer from "../../../../scripts/setup/nats-server.mjs";
import { anySteps, describeQueue, live } from "../../../../test/contracts/queue.ts";
import { claimInProcess } from "../../../../test/support/claim-in-process.ts";
import { startCuttingProxy } from "../../../../test/support/cutting-proxy.ts";
import { type NatsServers, startNats } from "../../../../test/support/nats-server.ts";
import { describeNeeding } from "../../../../test/support/needs.ts";
import { rejectionOf } from "../../../../test/support/refusal-of.ts";
import { manualClock, systemClock } from "../../../base/clock.ts";
import { digestJson } from "../../../base/digest.ts";
import { openNatsQueue } from "../open-nats-queue.ts";
import type { SettledItem, WorkQueue } from "../queue.ts";

const ids = (count: number) => Array.from({ length: count }, (_, i) => ({ id: `i${i}`, payload: i }));
const result = (name: string) => digestJson("test.result", name);
const clock = systemClock;

await describeNeeding(natsServer, "the queue on NATS", () => {
  let one: NatsServers;
  let three: NatsServers;
  let names = 0;
  beforeAll(async () => {
    [one, three] = await Promise.all([startNats(), startNats({ nodes: 3 })]);
  }, 60_000);
  afterAll(() => Promise.all([one?.stop(), three?.stop()]));
  const freshUrl = () => `nats://${one.hosts}/q${names++}`;
  const freshUrlOfThree = () => `nats://${three.hosts}/q${names++}?replicas=3`;

  describeQueue("the queue on one NATS node", (at) => openNatsQueue(freshUrl(), { clock: at }));
  describeQueue("the queue on three NATS nodes", (at) => openNatsQueue(freshUrlOfThree(), { clock: at }), {
    sequences: 10,
  });

  describe("several processes", () => {
    it("keep everything in the stream: a queue that is opened again goes on where it was", async () => {
      const [url, at] = [freshUrl(), manualClock(5)];
      const first = await openNatsQueue(url, { clock: at });
      await first.enqueue([{ id: "two words.*", payload: { n: 1 } }, ...ids(2)]);
      const [a, b] = await first.claim("w1", 2);
      await first.complete(a!, result("a"));
      await first.close();
      const second = await openNatsQueue(url, { clock: at });
      expect(await second.counts()).toEqual({ waiting: 1, claimed: 1, done: 1, dead: 0 });
      expect(await second.state("two words.*")).toMatchObject({ state: "done" });
      expect(await second.complete(b!, result("b"))).toEqual({ outcome: "done" });
      await second.close();
    });

    it("hear of each other's changes", async () => {
      const url = freshUrl();
      const [one, two] = await Promise.all([1, 2].map(() => openNatsQueue(url, { clock: manualClock(0) })));
      const watch = one!.watch();
      const waiting = watch.changed(60_000);
      await two!.enqueue(ids(1));
      expect(await waiting).toBe(true);
      expect(await one!.counts()).toMatchObject({ waiting: 1 });
      await one!.close();
      await two!.close();
    });

    it("claim everything and nothing twice", async () => {
      const url = freshUrl();
      const queue = await openNatsQueue(url, { clock });
      await queue.enqueue(ids(300));
      const taken = await Promise.all(["p1", "p2", "p3"].map((worker) => claimInProcess(url, worker)));
      const all = ids(300).map(({ id }) => id);
      expect(taken.flat().sort()).toEqual(all.sort());
      expect(await queue.counts()).toEqual({ waiting: 0, claimed: 0, done: 300, dead: 0 });
      await queue.close();
    });

    it("refuse a claim that another took over, though they know nothing of it yet", async () => {
      const [url, at] = [freshUrl(), manualClock(0)];
      const [one, two] = await Promise.all([1, 2].map(() => openNatsQueue(url, { clock: at })));
      await one!.enqueue(ids(1));
      const [old] = await one!.claim("w1", 1);
      await two!.counts();
      // The claim is valid by the first clock, and expired by the second clock, which runs ahead.
      at.advance(20_001);
      const [fresh] = await two!.claim("w2", 1);
      at.advance(-20_001);
      expect(await one!.complete(old!, result("x"))).toEqual({ outcome: "expired" });
      expect(await one!.heartbeat([old!])).toEqual([old]);
      expect(await two!.complete(fresh!, result("y"))).toEqual({ outcome: "done" });
      await one!.close();
      await two!.close();
    });

    it("whose clocks differ by hours neither lose an item nor end it twice", async () => {
      const hour = 3_600_000;
      await fc.assert(
        fc.asyncProperty(anySteps, async (steps) => {
          const url = freshUrl();
          const machines = [0, -2 * hour, 5 * hour].map(async (skewMs) => {
            const own = manualClock(10 * hour + skewMs);
            return { clock: own, queue: await openNatsQueue(url, { clock: own }) };
          });
          await live(await Promise.all(machines), steps);
        }),
        { numRuns: 30 },
      );
    });

    it("read ends in one order and miss none, while others end more", async () => {
      const url = freshUrlOfThree();
      const queues = await Promise.all([1, 2, 3].map(() => openNatsQueue(url, { clock })));
      const [reader, ...workers] = queues as [WorkQueue, ...WorkQueue[]];
      await reader.enqueue(ids(100));
      const working = Promise.all(workers.map((queue, i) => completeAll(queue, `w${i}`)));
      const heard: SettledItem[] = [];
      const watch = reader.watch();
      while (heard.length < 100) {
        const page = await reader.settled(heard.at(-1)?.cursor ?? 0, 7);
        heard.push(...page);
        if (page.length === 0) expect(await watch.changed(20_000)).toBe(true);
        // The reader's own ended items appear among those of the other processes.
        const [own] = await reader.claim("reader", 1);
        if (own !== undefined) await reader.complete(own, result(own.item));
      }
      await working;
      expect(new Set(heard.map(({ item }) => item)).size).toBe(100);
      // A process sees the ended items of other processes when the stream delivers them.
      await workers[0]!.counts();
      expect(heard).toEqual(await workers[0]!.settled(0, 1000));
      await Promise.all(queues.map((queue) => queue.close()));
    });
  });

  describe("servers that fail", () => {
    it("a lost answer is neither a lost nor a second change", async () => {
      const proxy = await startCuttingProxy(one.nodes[0]!.port);
      const queue = await openNatsQueue(`nats://127.0.0.1:${proxy.port}/q${names++}`, { clock });
      const lose = <T>(work: () => Promise<T>) => {
        proxy.cutAt('"seq":');
        return work();
      };
      expect(await lose(() => queue.enqueue(ids(2)))).toEqual({ added: 2, known: 0 });
      const claims = await lose(() => queue.claim("w1", 2));
      expect(claims.map(({ item, attempt, token }) => [item, attempt, token])).toEqual([
        ["i0", 1, 1],
        ["i1", 1, 1],
      ]);
      expect(await lose(() => queue.heartbeat(claims))).toEqual([]);
      expect(await lose(() => queue.complete(claims[0]!, result("a")))).toEqual({ outcome: "done" });
      expect(await lose(() => queue.fail(claims[1]!, { message: "no" }))).toEqual({ outcome: "dead" });
      expect(proxy.cuts).toBe(5);
      expect(await queue.counts()).toEqual({ waiting: 0, claimed: 0, done: 1, dead: 1 });
      await queue.close();
      await proxy.close();
    });

    it("work goes on after kill -9 of the only node, and of two of three in turn", async () => {
      for (const [servers, victims] of [
        [await startNats(), 1],
        [await startNats({ nodes: 3 }), 2],
      ] as const) {
        const url = `nats://${servers.hosts}/crash?replicas=${servers.nodes.length}`;
        const queues = await Promise.all([1, 2].map(() => openNatsQueue(url, { clock })));
        await queues[0]!.enqueue(ids(120));
        const working = Promise.all(queues.map((queue, i) => completeAll(queue, `w${i}`)));
        for (let i = 0; i < victims; i++) {
          await servers.nodes[i]!.kill();
          await servers.nodes[i]!.start();
        }
        const done = (await working).flat();
        expect(done.sort()).toEqual(
          ids(120)
            .map(({ id }) => id)
            .sort(),
        );
        expect(await queues[0]!.counts()).toEqual({ waiting: 0, claimed: 0, done: 120, dead: 0 });
        await Promise.all(queues.map((queue) => queue.close()));
        await servers.stop();
      }
    }, 90_000);

    it("says who does not answer, and what to do", async () => {
      const servers = await startNats();
      const queue = await openNatsQueue(`nats://${servers.hosts}`, { clock, patienceMs: 300 });
      await servers.nodes[0]!.kill();
      const away = await rejectionOf(queue.enqueue(ids(1)));
      expect([away.code, away.message]).toEqual(["queue-away", expect.stringContaining("Start nats-server")]);
      await queue.close();
      const none = await rejectionOf(openNatsQueue(`nats://${servers.hosts}`, { clock }));
      expect([none.code, none.message]).toEqual(["queue-away", expect.stringContaining(servers.hosts)]);
      await servers.stop();
    }, 30_000);
  });

  describe("the stream", () => {
    it("with a record that cannot be read makes every call fail, instead of finding nothing for ever", async () => {
      const url = freshUrl();
      const queue = await openNatsQueue(url, { clock });
      const waiting = queue.watch().changed(20_000);
      const { connect } = await import("@nats-io/transport-node");
      const { jetstream } = await import("@nats-io/jetstream");
      const connection = await connect({ servers: one.hosts });
      await jetstream(connection).publish(`rollbook.${url.split("/").at(-1)}.item.x`, '{"v":2}');
      await connection.close();
      expect(await waiting).toBe(true);
      expect((await rejectionOf(queue.claim("w1", 1))).code).toBe("bad-queue-record");
      expect((await rejectionOf(queue.settled(0, 1))).code).toBe("bad-queue-record");
      await queue.close();
    });

    it("is full at its limit of items: more are refused, and those in it still come to their end", async () => {
      const queue = await openNatsQueue(`${freshUrl()}?max-items=2`, { clock });
      await queue.enqueue(ids(2));
      const full = await rejectionOf(queue.enqueue([{ id: "more", payload: 1 }]));
      expect([full.code, full.message]).toEqual([
        "queue-refused",
        expect.stringContaining("maximum messages"),
      ]);
      const [a] = await queue.claim("w1", 1);
      expect(await queue.complete(a!, result("a"))).toEqual({ outcome: "done" });
      await queue.close();
    });

    it("is not made by one who only joins, and keeps the number of replicas it has", async () => {
      const url = freshUrl();
      expect((await rejectionOf(openNatsQueue(url, { clock, create: false }))).code).toBe("no-queue");
      await (await openNatsQueue(url, { clock })).close();
      await (await openNatsQueue(url, { clock, create: false })).close();
      const other = await rejectionOf(openNatsQueue(`${url}?replicas=3`, { clock }));
      expect([other.code, other.message]).toEqual([
        "queue-config",
        expect.stringContaining("num_replicas is 1, not 3"),
      ]);
    });
  });
});

async function completeAll(queue: WorkQueue, worker: string): Promise<string[]> {
  const done: string[] = [];
  for (;;) {
    const claims = await queue.claim(worker, 3);
    if (claims.length === 0 && (await queue.counts()).waiting === 0) return done;
    for (const claim of claims) {
      const { outcome } = await queue.complete(claim, result(claim.item));
      if (outcome === "done") done.push(claim.item);
    }
  }
}
