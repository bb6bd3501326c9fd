import { cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { digestJson } from "../../../base/digest.ts";
import { parseId } from "../../../base/ids.ts";
import { type ClosedRollout, ClosedRollouts } from "./closed-index.ts";

function newPath(): string {
  const directory = mkdtempSync(join(tmpdir(), "rollbook-closed-"));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  return join(directory, "closed.db");
}

/** What is left of it when the process ends now. */
function afterKill(path: string): string {
  const copy = newPath();
  for (const suffix of ["", "-wal"]) cpSync(path + suffix, copy + suffix);
  return copy;
}

const rollout = (calls: readonly number[]): ClosedRollout => ({
  content: digestJson("test", calls),
  envelope: digestJson("test", [calls]),
  ending: { kind: "failed", owner: "agent", message: "gave up" },
  calls,
  grades: [
    {
      ...{ kind: "graded", call: 3, name: parseId("good"), value: 0.5 },
      ...{ source: "s", idempotencyKey: "k", atMs: 7 },
    },
  ],
  receipt: digestJson("test", "receipt"),
});

function opened(path: string, boot = "boot-1"): ClosedRollouts {
  const closed = ClosedRollouts.open(path, boot);
  closed.filled();
  return closed;
}

describe("closed rollouts", () => {
  it("are known at once, after a restart and after a kill, calls with gaps and outcomes included", async () => {
    const path = newPath();
    const first = opened(path);
    expect(first.isNew).toBe(true);
    const all: [string, ClosedRollout][] = [
      ["a", rollout([0, 1, 2])],
      ["ü", rollout([1, 3])],
    ];
    for (const [id, each] of all) first.add(id, each);
    expect(first.get("ü")).toEqual(rollout([1, 3]));
    await first.saved();
    const killed = opened(afterKill(path));
    first.close();
    const second = opened(path);
    for (const each of [killed, second]) {
      expect(each.isNew).toBe(false);
      expect(all.map(([id]) => each.get(id))).toEqual(all.map(([, known]) => known));
      expect(each.get("b")).toBeUndefined();
      each.close();
    }
  });

  it("begin anew where the machine went down, the file is damaged, or the book had not been read to its end", () => {
    const path = newPath();
    const first = opened(path);
    const rebooted = ClosedRollouts.open(afterKill(path), "boot-2");
    expect(rebooted.isNew).toBe(true);
    const unfilled = ClosedRollouts.open(afterKill(newUnfilled()), "boot-1");
    expect(unfilled.isNew).toBe(true);
    first.close();
    const atRest = opened(path, "boot-2");
    expect(atRest.isNew).toBe(false);
    for (const each of [rebooted, unfilled, atRest]) each.close();
    writeFileSync(path, "not a database, and longer than a header of one would be".repeat(100));
    const repaired = opened(path);
    expect(repaired.isNew).toBe(true);
    repaired.close();
  });

  it("show an outcome that is not durable yet, and do not keep it", async () => {
    const path = newPath();
    const closed = opened(path);
    const [before, after] = [{ ...rollout([0]), grades: [] }, rollout([0])];
    closed.add("a", before);
    closed.show("a", after);
    expect(closed.get("a")).toEqual(after);
    await closed.saved();
    const killed = opened(afterKill(path));
    expect(killed.get("a")).toEqual(before);
    closed.add("a", after);
    closed.close();
    const again = opened(path);
    expect(again.get("a")).toEqual(after);
    for (const each of [killed, again]) each.close();
  });
});

function newUnfilled(): string {
  const path = newPath();
  const closed = ClosedRollouts.open(path, "boot-1");
  onTestFinished(() => closed.close());
  return path;
}
