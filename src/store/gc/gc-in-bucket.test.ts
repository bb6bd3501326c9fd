/** gc of a book in a bucket. Each working copy stands for a machine; the bucket is in memory, with a manual clock. */
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { mapBucket } from "../../../test/support/map-bucket.ts";
import { type Digest, manualClock } from "../../base/index.ts";
import { BookHead, newKeyPem, openRecord, type SignHead, signerFromPem } from "../../contract/index.ts";
import { MEDIA_KIND } from "../../contract/rollout/call.ts";
import { RolloutContent } from "../../contract/rollout/rollout.ts";
import { Task } from "../../contract/task/task.ts";
import { type Book, openBookOf } from "../book.ts";
import { RemoteBook } from "../remote/remote-book.ts";
import { RemovedPacks } from "../remote/removed-packs.ts";
import { collectIn, type GcReport } from "./gc.ts";

const [ROOT, NODE, LEAF] = [Task.kind, RolloutContent.kind, MEDIA_KIND];
const MINUTE_MS = 60_000;
const clock = manualClock(1_700_000_000_000);
const signer = signerFromPem(newKeyPem());
const signHead: SignHead = (head) => signer.signHead(head);

let scratch = "";
let made = 0;
beforeAll(() => {
  scratch = mkdtempSync(join(tmpdir(), "rollbook-bucket-gc-"));
});
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

/** A server and any number of machines. */
class Cluster {
  readonly objects = new Map<string, Uint8Array>();
  nowMs = 10 * MINUTE_MS;
  /** Number of changes that still succeed. */
  left = Number.POSITIVE_INFINITY;
  readonly #sign: SignHead | undefined;

  /** With a key, every writer writes signed heads. */
  constructor(sign?: SignHead) {
    this.#sign = sign;
  }

  machine(): Machine {
    const bucket = mapBucket(this.objects, [], {
      nowMs: () => this.nowMs,
      onChange: () => {
        if (--this.left < 0) throw new Error("the connection broke");
      },
    });
    const root = join(scratch, String(made++));
    return new Machine(root, this.#sign, () => new RemoteBook(bucket, root));
  }

  keys(prefix = ""): string[] {
    return [...this.objects.keys()].filter((key) => key.startsWith(prefix)).sort();
  }

  /** Reads on a new machine. Leaves out heads, which must match the packs and reference each other. */
  async digests(): Promise<Digest[]> {
    const book = await this.machine().open("read");
    const found: Digest[] = [];
    const heads = new Set<Digest>();
    for await (const item of book.scan()) {
      expect(item).not.toMatchObject({ type: "damage" });
      if (item.type === "damage") continue;
      if (item.kind === BookHead.kind) heads.add(item.digest);
      else found.push(item.digest);
    }
    for (const head of heads) {
      const { previous } = openRecord(BookHead, (await book.get(head))!.bytes, head);
      expect(previous.filter((each) => !heads.has(each))).toEqual([]);
    }
    await book.close();
    return found.sort();
  }
}

class Machine {
  readonly root: string;
  readonly #sign: SignHead | undefined;
  readonly #remote: () => RemoteBook;

  constructor(root: string, sign: SignHead | undefined, remote: () => RemoteBook) {
    this.root = root;
    this.#sign = sign;
    this.#remote = remote;
  }

  open(mode: "read" | "write" = "write", packBytes = 1500): Promise<Book> {
    return openBookOf(this.#remote(), this.root, {
      ...{ clock, mode, packBytes, largeBytes: 600 },
      sign: () => this.#sign,
    });
  }

  gc(options: { dryRun?: boolean } = {}): Promise<GcReport> {
    return collectIn(this.#remote(), this.root, { clock, sign: this.#sign, ...options });
  }

  packs(): string[] {
    return readdirSync(join(this.root, "packs")).sort();
  }
}

const node = (book: Book, kind: string, children: readonly Digest[], more: object = {}) =>
  book.put(kind, Buffer.from(JSON.stringify({ children, ...more })));

/** Roots with the blobs they need, garbage, copies, and large files of both. */
async function fill(cluster: Cluster, sessions = 4): Promise<{ kept: Digest[]; machines: Machine[] }> {
  const machines = [cluster.machine(), cluster.machine()];
  const kept: Digest[] = [];
  for (let i = 0; i < sessions; i++) {
    const book = await machines[i % 2]!.open();
    const [leaf, large, inner] = [
      book.put(LEAF, Buffer.from(`leaf ${i % 3}`)),
      book.put(LEAF, new Uint8Array(700).fill(i)),
      book.put(LEAF, Buffer.from(`inner ${i}`)),
    ];
    const middle = node(book, NODE, [inner], { i });
    kept.push(leaf, large, inner, middle, node(book, ROOT, [leaf, large, middle], { i }));
    book.put(LEAF, Buffer.from(`garbage ${i}`));
    book.put(LEAF, new Uint8Array(800).fill(i));
    await book.close();
  }
  return { kept: [...new Set(kept)].sort(), machines };
}

describe("gc of a book in a bucket", () => {
  it("leaves one copy of what roots lead to, in the bucket and on every machine, and says so beforehand", async () => {
    const cluster = new Cluster();
    const { kept, machines } = await fill(cluster);
    const before = cluster.keys("packs/");
    const collector = cluster.machine();
    const plan = await collector.gc({ dryRun: true });
    expect(cluster.keys("packs/")).toEqual(before);
    const report = await collector.gc();
    expect({ ...report, dryRun: true }).toEqual(plan);
    expect(report).toMatchObject({ blobsKept: kept.length, blobsRemoved: 8, copiesRemoved: 1 });
    expect(await cluster.digests()).toEqual(kept);
    expect(cluster.keys("packs/").filter((key) => before.includes(key))).toEqual([]);
    expect(cluster.keys("large/")).toHaveLength(4);
    expect(cluster.keys("sessions/")).toEqual([]);
    // A machine that had the old packs drops them, and does not push them again.
    for (const machine of machines) await (await machine.open()).close();
    for (const machine of machines)
      expect(machine.packs().map((file) => `packs/${file}`)).toEqual(
        cluster.keys("packs/").filter((key) => key.endsWith(".pack")),
      );
    expect(await cluster.digests()).toEqual(kept);
    expect(await machines[0]!.gc()).toMatchObject({ blobsRemoved: 0, copiesRemoved: 0, packsReplaced: 0 });
  });

  it("moves blobs under an open reader without its noticing", async () => {
    const cluster = new Cluster();
    const { kept, machines } = await fill(cluster);
    const reader = await machines[0]!.open("read");
    for (const digest of kept) expect(await reader.has(digest)).toBe(true);
    await cluster.machine().gc();
    await reader.update();
    for (const digest of kept) expect(await reader.get(digest)).toBeDefined();
    await reader.close();
  });

  it("does not touch what a writer on another machine has put, nor what it will refer to", async () => {
    const cluster = new Cluster();
    const writer = await cluster.machine().open();
    const child = writer.put(LEAF, new Uint8Array(50));
    const large = writer.put(LEAF, new Uint8Array(700));
    for (let i = 0; i < 20; i++) writer.put(LEAF, new Uint8Array(90).fill(i));
    await writer.flush();
    expect(cluster.keys("packs/")).not.toEqual([]);
    expect(await cluster.machine().gc()).toMatchObject({ blobsRemoved: 0, packsReplaced: 0 });
    expect(writer.put(LEAF, new Uint8Array(50))).toBe(child);
    const root = node(writer, ROOT, [child, large]);
    await writer.close();
    expect(await cluster.machine().gc()).toMatchObject({ blobsKept: 3, blobsRemoved: 20 });
    expect(await cluster.digests()).toEqual([child, large, root].sort());
  });

  it("ends a session that was silent: if it lives after all, it cannot refer to what is gone", async () => {
    const cluster = new Cluster();
    // The last pack of the first machine is in parts. That of the second is full and only on its disk.
    const first = await cluster.machine().open();
    const second = await cluster.machine().open();
    const lost = first.put(LEAF, Buffer.from("of the first"));
    for (let i = 0; i < 20; i++) second.put(LEAF, new Uint8Array(90).fill(i));
    await Promise.all([first.flush(), second.flush()]);
    for (let i = 0; i < 30; i++) second.put(LEAF, new Uint8Array(100).fill(i));
    cluster.nowMs += 2 * MINUTE_MS;
    // This machine seals their packs. Another minute later it knows that no other machine does.
    const machine = cluster.machine();
    await machine.gc();
    cluster.nowMs += 2 * MINUTE_MS;
    await machine.gc();
    expect(cluster.keys("sessions/")).toEqual([]);
    expect(await cluster.digests()).toEqual([]);
    node(first, ROOT, [lost]);
    await expect(first.flush()).rejects.toMatchObject({ code: "session-replaced" });
    await expect(second.flush()).rejects.toMatchObject({ code: "session-replaced" });
    expect(await cluster.digests()).toEqual([]);
    await Promise.all([first.close(), second.close()]);
  });

  it("keeps a pack away that a machine sealed and did not push before its session was ended", async () => {
    const cluster = new Cluster();
    const machine = cluster.machine();
    const book = await machine.open();
    const leaf = book.put(LEAF, new Uint8Array(90));
    for (let i = 1; i < 20; i++) book.put(LEAF, new Uint8Array(90).fill(i));
    await book.flush();
    for (let i = 0; i < 20; i++) node(book, ROOT, [leaf], { i });
    cluster.left = 0;
    await expect(book.flush()).rejects.toThrow("connection broke");
    await book.close();
    cluster.left = Number.POSITIVE_INFINITY;
    const collector = cluster.machine();
    for (let i = 0; i < 3; i++) {
      cluster.nowMs += 2 * MINUTE_MS;
      await collector.gc();
    }
    const there = await cluster.digests();
    expect(there).not.toContain(leaf);
    await (await machine.open()).close();
    expect(await cluster.digests()).toEqual(there);
    expect(readdirSync(join(machine.root, "torn"))).not.toEqual([]);
  });

  it("ends a session that died between the first bytes of a pack and the pack", async () => {
    const cluster = new Cluster();
    const dead = await cluster.machine().open();
    for (let i = 0; i < 20; i++) dead.put(LEAF, new Uint8Array(90).fill(i));
    cluster.left = 1;
    await expect(dead.flush()).rejects.toThrow("connection broke");
    cluster.left = Number.POSITIVE_INFINITY;
    expect(cluster.keys("parts/")).toHaveLength(1);
    const collector = cluster.machine();
    for (let i = 0; i < 2; i++) {
      cluster.nowMs += 2 * MINUTE_MS;
      await collector.gc();
    }
    expect(cluster.keys("sessions/")).toEqual([]);
    expect(await cluster.digests()).toEqual([]);
    await dead.close();
  });

  it("runs once at a time on all machines, and goes on where one that died has stopped", async () => {
    const cluster = new Cluster();
    const { kept } = await fill(cluster);
    const running = { code: "gc-running" };
    const results = await Promise.allSettled([cluster.machine().gc(), cluster.machine().gc()]);
    expect(results.some(({ status }) => status === "fulfilled")).toBe(true);
    for (const result of results)
      if (result.status === "rejected") expect(result.reason).toMatchObject(running);
    expect(await cluster.digests()).toEqual(kept);
    const collector = await cluster.machine().open();
    const [session] = cluster.keys("sessions/");
    await new RemovedPacks(mapBucket(cluster.objects)).take(session!.slice("sessions/".length));
    await expect(cluster.machine().gc()).rejects.toMatchObject(running);
    cluster.nowMs += 2 * MINUTE_MS;
    expect(await cluster.machine().gc()).toMatchObject({ blobsKept: kept.length });
    await collector.close();
  });

  it("may break off after any number of changes: no root is lost, nothing is damaged, and the next one ends it", async () => {
    let isDone = false;
    for (let changes = 0; !isDone; changes++) {
      const cluster = new Cluster(signHead);
      const { kept, machines } = await fill(cluster, 2);
      cluster.left = changes;
      isDone = await machines[0]!.gc().then(
        () => true,
        () => false,
      );
      cluster.left = Number.POSITIVE_INFINITY;
      const left = new Set(await cluster.digests());
      expect(kept.filter((digest) => !left.has(digest))).toEqual([]);
      // Another machine continues to write meanwhile.
      const book = await machines[1]!.open();
      const more = node(book, ROOT, [], { changes });
      await book.close();
      // The machine whose gc was interrupted holds no gc lock.
      for (const machine of [machines[0]!, machines[1]!]) {
        cluster.nowMs += 2 * MINUTE_MS;
        await machine.gc();
      }
      const again = await machines[0]!.open();
      const last = node(again, ROOT, [more], { changes });
      await again.close();
      expect(await cluster.digests()).toEqual([...kept, more, last].sort());
      expect(cluster.keys("sessions/")).toEqual([]);
      expect(cluster.keys("large/").filter((key) => key.endsWith(LEAF))).toHaveLength(2); // without heads
      expect(changes).toBeLessThan(200);
    }
  });
});
