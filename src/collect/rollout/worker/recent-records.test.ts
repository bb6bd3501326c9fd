import { expect, test } from "vitest";
import { type Digest, digestBytes } from "../../../base/index.ts";
import { RolloutEnvelope, seal, Task } from "../../../contract/index.ts";
import type { Blob } from "../../../store/index.ts";
import { RecentRecords } from "./recent-records.ts";

/** Makes tasks by number, and counts the reads of each. */
function bookOf(count: number, most?: number) {
  const tasks = Array.from({ length: count }, (_, i) =>
    seal(Task, {
      ...{ id: `task-${i}`, environment: "local@1", dataSource: "real", payload: {} },
    } as never),
  );
  const blobs = new Map<Digest, Blob>(tasks.map(({ kind, digest, bytes }) => [digest, { kind, bytes }]));
  const reads: Digest[] = [];
  const get = async (digest: Digest) => {
    reads.push(digest);
    return blobs.get(digest);
  };
  return { tasks, reads, blobs, records: new RecentRecords({ get }, most) };
}

test("a record is read once, and one that is asked for as another kind is refused", async () => {
  const { tasks, reads, records } = bookOf(1);
  const { digest } = tasks[0]!;
  expect(await records.read(Task, digest)).toEqual(tasks[0]!.record);
  expect(await records.read(Task, digest)).toBe(await records.read(Task, digest));
  expect(reads).toEqual([digest]);
  await expect(records.read(RolloutEnvelope, digest)).rejects.toMatchObject({ code: "unknown-schema" });
});

test("a record that is missing is looked for again", async () => {
  const { tasks, blobs, records } = bookOf(1);
  const { digest, kind, bytes } = tasks[0]!;
  blobs.delete(digest);
  await expect(records.read(Task, digest)).rejects.toMatchObject({ code: "missing-blob" });
  blobs.set(digestBytes(kind, bytes), { kind, bytes });
  expect(await records.read(Task, digest)).toEqual(tasks[0]!.record);
});

test("the oldest are given up first", async () => {
  const { tasks, reads, records } = bookOf(2_100);
  for (const { digest } of tasks) await records.read(Task, digest);
  expect(records.held(Task, tasks.at(-1)!.digest)).toBeDefined();
  expect(records.held(Task, tasks[0]!.digest)).toBeUndefined();
  expect(reads).toHaveLength(2_100);
});

test("as many are held as the caller says, and none of those read once", async () => {
  const { tasks, reads, records } = bookOf(5, 3);
  for (const { digest } of tasks) await records.read(Task, digest);
  expect(tasks.map(({ digest }) => records.held(Task, digest) !== undefined)).toEqual([
    ...[false, false, true, true, true],
  ]);
  const { digest } = tasks[0]!;
  for (const _ of [1, 2]) expect(await records.readOnce(Task, digest)).toEqual(tasks[0]!.record);
  expect(reads).toHaveLength(7);
});
