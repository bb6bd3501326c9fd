import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { GroupCommit } from "./group-commit.ts";

const turn = () => new Promise(setImmediate);

/** A log of numbers whose commits end on command. */
function slowLog(options: Partial<ConstructorParameters<typeof GroupCommit>[0]> = {}) {
  let pending: number[] = [];
  const groups: number[][] = [];
  const ends: { done: () => void; failed: (error: Error) => void }[] = [];
  const commits = new GroupCommit({
    commit() {
      groups.push(pending);
      pending = [];
      return new Promise<void>((done, failed) => ends.push({ done, failed }));
    },
    ...options,
  });
  const add = (entry: number) => {
    pending.push(entry);
    commits.add();
  };
  return { commits, groups, ends, add };
}

describe("a group commit", () => {
  it("commits together what comes during a commit, and tells nobody before it is durable", async () => {
    const { commits, groups, ends, add } = slowLog();
    add(1);
    const first = commits.flush();
    expect(groups).toEqual([[1]]);
    let isDurable = false;
    for (const entry of [2, 3]) {
      add(entry);
      void commits.flush().then(() => {
        isDurable = true;
      });
    }
    ends[0]!.done();
    await first;
    await turn();
    expect([groups, isDurable]).toEqual([[[1], [2, 3]], false]);
    ends[1]!.done();
    await turn();
    expect(isDurable).toBe(true);
    await commits.flush();
    expect(groups).toHaveLength(2);
  });

  it("starts a commit that nobody hurries after its time, or with the next that somebody hurries", async () => {
    const { commits, groups, ends, add } = slowLog();
    add(1);
    const patient = commits.flush(20);
    await turn();
    expect(groups).toEqual([]);
    await expect.poll(() => groups).toEqual([[1]]);
    ends[0]!.done();
    await patient;
    add(2);
    const along = commits.flush(60_000);
    add(3);
    const hurried = commits.flush();
    expect(groups).toEqual([[1], [2, 3]]);
    ends[1]!.done();
    await Promise.all([along, hurried]);
  });

  it("of enough entries waits for no more", () => {
    const { commits, groups, add } = slowLog({ enough: 3 });
    for (const entry of [1, 2, 3]) {
      add(entry);
      void commits.flush(60_000);
    }
    expect(groups).toEqual([[1, 2, 3]]);
  });

  it("that fails tells its own waiters, and where nothing can follow, everybody", async () => {
    for (const failsForGood of [false, true]) {
      const { commits, ends, add } = slowLog({ failsForGood });
      add(1);
      const first = expect(commits.flush()).rejects.toThrow("full");
      add(2);
      const second = commits.flush();
      const told = failsForGood ? expect(second).rejects.toThrow("full") : undefined;
      ends[0]!.failed(new Error("full"));
      await first;
      await turn();
      if (!failsForGood) {
        ends[1]!.done();
        await second;
      }
      await told;
    }
  });

  it("commits every entry once, in order, and before its waiter hears", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.record({ hurry: fc.boolean(), pause: fc.boolean() })), async (steps) => {
        let pending: number[] = [];
        const durable: number[] = [];
        const commits = new GroupCommit({
          async commit() {
            const group = pending;
            pending = [];
            await turn();
            durable.push(...group);
          },
          enough: 4,
        });
        const waits = [];
        for (const [i, { hurry, pause }] of steps.entries()) {
          pending.push(i);
          commits.add();
          waits.push(commits.flush(hurry ? 0 : 2).then(() => expect(durable).toContain(i)));
          if (pause) await turn();
        }
        await Promise.all(waits);
        expect(durable).toEqual(steps.map((_, i) => i));
      }),
      { numRuns: 50 },
    );
  });

  it("that cannot go on after a failure commits nothing more, and says so to all who come", async () => {
    const { commits, groups, ends, add } = slowLog({ failsForGood: true });
    add(1);
    const first = commits.flush();
    add(2);
    const second = commits.flush();
    ends[0]!.failed(new Error("the disk is gone"));
    for (const each of [first, second]) await expect(each).rejects.toThrow("the disk is gone");
    add(3);
    await expect(commits.flush()).rejects.toThrow("the disk is gone");
    await turn();
    expect(groups).toEqual([[1]]);
  });
});
