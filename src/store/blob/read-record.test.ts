import { describe, expect, it } from "vitest";
import { digestJson } from "../../base/digest.ts";
import { parseId } from "../../base/ids.ts";
import { Manifest } from "../../contract/batch/manifest.ts";
import { seal } from "../../contract/codec/record.ts";
import type { EnvironmentKey } from "../../contract/task/environment.ts";
import { Task } from "../../contract/task/task.ts";
import { memoryStore } from "./memory-store.ts";
import { readRecord } from "./read-record.ts";

describe("readRecord", () => {
  const store = memoryStore();
  const task = seal(Task, {
    ...{
      id: parseId("t-1"),
      environment: "local@1" as EnvironmentKey,
      payload: { a: 1 },
      dataSource: "real",
    },
  });
  store.put(task.kind, task.bytes);

  it("gives what was put, and says which kind it is instead, or that it is not there", async () => {
    expect(await readRecord(store, Task, task.digest)).toEqual(task.record);
    await expect(readRecord(store, Manifest, task.digest)).rejects.toMatchObject({
      code: "unknown-schema",
      fields: { actual: Task.kind },
    });
    const missing = { code: "missing-blob", fields: { kind: Task.kind } };
    await expect(readRecord(store, Task, digestJson("test", 1))).rejects.toMatchObject(missing);
    await expect(readRecord(store, Task, "../../etc/passwd" as never)).rejects.toMatchObject(missing);
  });
});
