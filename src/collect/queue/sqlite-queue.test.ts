import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { describeQueue } from "../../../test/contracts/queue.ts";
import { claimInProcess } from "../../../test/support/claim-in-process.ts";
import { manualClock, systemClock } from "../../base/clock.ts";
import { digestJson } from "../../base/digest.ts";
import { openSqlite } from "../../store/disk/sqlite.ts";
import { openSqliteQueue } from "./sqlite-queue.ts";

const directory = mkdtempSync(join(tmpdir(), "rollbook-queue-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));
let files = 0;
const freshPath = () => join(directory, `queue-${files++}.db`);

describeQueue("the SQLite queue", async (clock) => openSqliteQueue(freshPath(), { clock }));
describeQueue("the queue in memory", async (clock) => openSqliteQueue(":memory:", { clock }));

const ids = (count: number) => Array.from({ length: count }, (_, i) => ({ id: `i${i}`, payload: i }));

describe("the SQLite queue", () => {
  it("keeps everything through close and open", async () => {
    const path = freshPath();
    const clock = manualClock(5);
    const first = openSqliteQueue(path, { clock });
    await first.enqueue(ids(3));
    const [a, b] = await first.claim("w1", 2);
    await first.complete(a!, digestJson("test", "a"));
    await first.close();
    const second = openSqliteQueue(path, { clock });
    expect(await second.counts()).toEqual({ waiting: 1, claimed: 1, done: 1, dead: 0 });
    expect(await second.complete(b!, digestJson("test", "b"))).toEqual({ outcome: "done" });
    await second.close();
  });

  it("commits what is asked together in one transaction", async () => {
    const path = freshPath();
    const queue = openSqliteQueue(path, { clock: manualClock(0) });
    await queue.enqueue(ids(50));
    const claims = await queue.claim("w1", 50);
    const db = openSqlite(path);
    const version = db.prepare("PRAGMA data_version");
    const before = version.get<{ data_version: number }>()!.data_version;
    const counts = db.prepare("SELECT count(*) AS n FROM items WHERE state = 'done'");
    const seen = new Set<number>();
    const done = Promise.all(claims.map((claim) => queue.complete(claim, digestJson("test", claim.item))));
    for (let open = true; open; ) {
      seen.add(counts.get<{ n: number }>()!.n);
      open = await Promise.race([
        done.then(() => false),
        new Promise<true>((turn) => setImmediate(turn, true)),
      ]);
    }
    seen.add(counts.get<{ n: number }>()!.n);
    expect([...seen]).toEqual([0, 50]);
    expect(version.get<{ data_version: number }>()!.data_version).not.toBe(before);
    db.close();
    await queue.close();
  });

  it("lets the event loop run while another process holds the lock", async () => {
    const path = freshPath();
    const queue = openSqliteQueue(path, { clock: manualClock(0) });
    const db = openSqlite(path);
    db.exec("BEGIN IMMEDIATE");
    const adding = queue.enqueue(ids(1));
    let turns = 0;
    for (; turns < 20; turns++) await new Promise((turn) => setTimeout(turn, 1));
    db.exec("COMMIT");
    expect(turns).toBe(20);
    expect(await adding).toEqual({ added: 1, known: 0 });
    db.close();
    await queue.close();
  });

  it("tells a watch of what another connection did", async () => {
    const path = freshPath();
    const [one, two] = [1, 2].map(() => openSqliteQueue(path, { clock: manualClock(0) }));
    const watch = one!.watch();
    const waiting = watch.changed(60_000);
    await two!.enqueue(ids(1));
    expect(await waiting).toBe(true);
    expect(await watch.changed(1)).toBe(false);
    await one!.close();
    await two!.close();
  });

  it("finds work by index alone, whatever the queue holds", async () => {
    const path = freshPath();
    await openSqliteQueue(path, { clock: manualClock(0) }).close();
    const db = openSqlite(path);
    const plan = (sql: string) =>
      db
        .prepare(`EXPLAIN QUERY PLAN ${sql}`)
        .all<{ detail: string }>()
        .map((row) => row.detail)
        .join("; ");
    expect(
      plan(
        "SELECT * FROM items WHERE state = 'waiting' AND lane = 'x' AND ready_at <= 5 ORDER BY ready_at, seq LIMIT 9",
      ),
    ).toBe("SEARCH items USING INDEX waiting (lane=? AND ready_at<?)");
    expect(plan("SELECT * FROM items WHERE state = 'claimed' AND expires_at < 5")).toBe(
      "SEARCH items USING INDEX claimed (expires_at<?)",
    );
    db.close();
  });

  it("three processes claim everything and nothing twice", async () => {
    const path = freshPath();
    const queue = openSqliteQueue(path, { clock: systemClock });
    await queue.enqueue(ids(300));
    const taken = await Promise.all(["p1", "p2", "p3"].map((worker) => claimInProcess(path, worker)));
    expect(taken.flat().sort()).toEqual(
      ids(300)
        .map(({ id }) => id)
        .sort(),
    );
    expect(await queue.counts()).toEqual({ waiting: 0, claimed: 0, done: 300, dead: 0 });
    await queue.close();
  });
});
