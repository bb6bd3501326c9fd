import { copyFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { AppendLog, type LogPlace } from "./append-log.ts";
import { LogReader } from "./log-reader.ts";

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "rollbook-log-"));
  return () => rmSync(folder, { recursive: true, force: true });
});

const bytes = (text: string) => Buffer.from(text);

function reopen(segmentBytes?: number): { log: AppendLog; found: { place: LogPlace; text: string }[] } {
  const found: { place: LogPlace; text: string }[] = [];
  const visit = ({ place, payload }: { place: LogPlace; payload: Buffer }) =>
    found.push({ place, text: payload.toString() });
  const log = AppendLog.open(folder, visit, segmentBytes === undefined ? {} : { segmentBytes });
  onTestFinished(() => log.close());
  return { log, found };
}

function read(places: readonly LogPlace[]): string[] {
  const reader = new LogReader(folder);
  const texts = places.map((place) => reader.read(place).toString());
  reader.close();
  return texts;
}

describe("an append log", () => {
  it("names the segment of the next entry, also where a segment is full", async () => {
    const { log } = reopen(100);
    for (let i = 0; i < 12; i++) {
      const { nextSegment } = log;
      expect(log.append([bytes("x".repeat(20))]).segment).toBe(nextSegment);
    }
    expect(log.nextSegment).toBeGreaterThan(3);
    await log.flush();
  });

  it("gives back what was flushed, in order, in this process and the next, over many segments", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.array(fc.string(), { maxLength: 4 }), { maxLength: 30 }),
        async (entries) => {
          rmSync(folder, { recursive: true, force: true });
          const { log } = reopen(200);
          const nothing = new Uint8Array(new ArrayBuffer(0));
          const places: LogPlace[] = [];
          for (const [i, parts] of entries.entries()) {
            places.push(log.append([...parts.map(bytes), nothing]));
            if (i % 3 === 0) void log.flush();
          }
          await log.flush();
          const texts = entries.map((parts) => parts.join(""));
          expect(read(places)).toEqual(texts.map((text) => bytes(text).toString()));
          expect(reopen().found.map(({ text }) => text)).toEqual(texts.map((text) => bytes(text).toString()));
        },
      ),
      { numRuns: 30 },
    );
  });

  it("keeps entries of all sizes apart, whether they are copied together or go out from where they are", async () => {
    const { log } = reopen();
    const sizes = [10, 200_000, 0, 130_000, 100_000, 100_000, 100_000, 100_000, 100_000, 100_000, 600_000, 7];
    const texts = sizes.map((size, i) => `${i}:`.padEnd(size, String.fromCharCode(97 + i)));
    const parts = (text: string, i: number) =>
      i % 2 === 0 ? [text] : [bytes(text.slice(0, 5)), text.slice(5)];
    for (let round = 0; round < 2; round++) {
      for (const [i, text] of texts.entries()) log.append(parts(text, i));
      await log.flush();
    }
    expect(reopen().found.map(({ text }) => text)).toEqual([...texts, ...texts]);
  });

  it("keeps the first part of an entry as it was appended, whatever its bytes are by the time of the write", async () => {
    const { log } = reopen();
    const head = bytes("head ");
    for (const size of [10, 200_000]) {
      head.write("head ");
      log.append([head, "x".repeat(size)]);
      head.fill("?");
    }
    await log.flush();
    expect(reopen().found.map(({ text }) => text.slice(0, 7))).toEqual(["head xx", "head xx"]);
  });

  it("tells everyone who waits, even if one of them fails to listen", async () => {
    const { log } = reopen();
    const failure = new Error("not listening");
    const uncaught = new Promise((done) => process.once("uncaughtException", done));
    log.append([bytes("entry")]);
    log.whenDurable({
      durable: () => {
        throw failure;
      },
      lost: () => {},
    });
    await log.flush();
    expect(await uncaught).toBe(failure);
  });

  it("that is closed takes nothing more: another process may write there", async () => {
    const { log } = reopen();
    log.append([bytes("entry")]);
    await log.close();
    const before = readdirSync(folder);
    expect(() => log.append([bytes("late")])).toThrow(expect.objectContaining({ code: "log-closed" }));
    await log.flush();
    await log.close();
    expect(readdirSync(folder)).toEqual(before);
  });

  it("counts what is not on disk, the write under way included", async () => {
    const { log } = reopen();
    const first = log.append([bytes("first")]);
    const written = log.flush();
    await new Promise(setImmediate);
    await new Promise(setImmediate);
    const second = log.append([bytes("second")]);
    expect(log.pendingBytes).toBe(first.bytes + second.bytes);
    await written;
    expect(log.pendingBytes).toBe(second.bytes);
    await log.flush();
    expect(log.pendingBytes).toBe(0);
  });

  it("removes a segment when its last entry is released, and never the one that is being filled", async () => {
    const { log } = reopen(100);
    const places = Array.from({ length: 6 }, (_, i) => log.append([bytes(`entry ${i} ${"x".repeat(50)}`)]));
    await log.flush();
    expect(readdirSync(folder)).toHaveLength(3);
    for (const place of places.slice(0, 3)) log.release(place);
    expect(readdirSync(folder)).toHaveLength(2);
    expect(read(places.slice(3))[0]).toContain("entry 3");
    for (const place of places.slice(3)) log.release(place);
    await log.close();
    expect(readdirSync(folder)).toEqual([]);
  });

  it("refuses to release more than a segment holds", async () => {
    const { log } = reopen(100);
    const places = Array.from({ length: 4 }, (_, i) => log.append([bytes(`entry ${i} ${"x".repeat(50)}`)]));
    await log.flush();
    for (const place of places.slice(0, 2)) log.release(place);
    const twice = expect.objectContaining({
      code: "released-twice",
      fields: { directory: folder, segment: 1 },
    });
    expect(() => log.release(places[0]!)).toThrow(twice);
    log.release(places[2]!);
    log.release(places[3]!);
    expect(() => log.release(places[2]!)).toThrow("segment 2 of the journal has no entry left to release");
  });

  it("that a crash has torn ends at the tear, wherever it is", async () => {
    const { log } = reopen();
    log.append([bytes("first")]);
    await log.flush();
    log.append([bytes("second"), bytes("!")]);
    log.append([bytes("third")]);
    await log.flush();
    const [name] = readdirSync(folder);
    // Zeros follow: preallocated blocks.
    const whole = readFileSync(join(folder, name!)).subarray(0, 89);
    for (let end = 0; end <= whole.length; end++) {
      writeFileSync(join(folder, name!), whole.subarray(0, end));
      const texts = reopen().found.map(({ text }) => text);
      expect(texts).toEqual(["first", "second!", "third"].slice(0, texts.length));
      expect(texts).toHaveLength(end < 29 ? 0 : end < 60 ? 1 : end < 89 ? 2 : 3);
    }
  });

  it("refuses to go on where a later write stands behind a damaged entry, but not behind a torn one", async () => {
    const { log } = reopen();
    for (const text of ["first", "second", "third"]) {
      log.append([bytes(text)]);
      await log.flush();
    }
    const [name] = readdirSync(folder);
    const path = join(folder, name!);
    copyFileSync(path, `${path}.whole`);
    const block = readFileSync(path);
    block[26]! ^= 1; // in "first"
    writeFileSync(path, block);
    expect(() => reopen()).toThrow(/the entry at 0 is damaged/);
    const torn = readFileSync(`${path}.whole`);
    torn[torn.indexOf("third")]! ^= 1; // the last write
    writeFileSync(path, torn);
    expect(reopen().found.map(({ text }) => text)).toEqual(["first", "second"]);
  });

  it("takes the number in a damaged header for no reason to look away", async () => {
    const { log } = reopen();
    for (const text of ["first", "second", "third", "fourth"]) {
      log.append([bytes(text)]);
      await log.flush();
    }
    const path = join(folder, readdirSync(folder)[0]!);
    const block = readFileSync(path);
    block.writeUInt32LE(0xffffffff, 29 + 16); // the number of the second write
    writeFileSync(path, block);
    expect(() => reopen()).toThrow(/the entry at 29 is damaged/);
  });

  it("goes on where power failed in the first write to a segment, whichever part of it reached the disk", async () => {
    const { log } = reopen(50);
    for (const texts of [["first"], ["second"], ["third", "fourth"]]) {
      for (const text of texts) log.append([bytes(text)]);
      await log.flush();
    }
    const path = join(folder, readdirSync(folder)[1]!);
    const block = readFileSync(path);
    expect(block.indexOf("third")).toBe(24);
    for (const lost of [16, 0]) {
      block.fill(0, lost, 29); // "third", from the number of its write on, and all of it
      writeFileSync(path, block);
      expect(reopen().found.map(({ text }) => text)).toEqual(["first", "second"]);
    }
  });

  it("says so when a write fails, and promises nothing more", async () => {
    const log = AppendLog.open(folder, () => {});
    rmSync(folder, { recursive: true, force: true });
    log.append([bytes("lost")]);
    await expect(log.flush()).rejects.toThrow(/no such file/);
    await expect(log.flush()).rejects.toThrow("an earlier write to the journal failed");
    expect(() => log.append([bytes("more")])).toThrow("an earlier write to the journal failed");
    await expect(log.close()).rejects.toThrow("an earlier write");
  });
});
