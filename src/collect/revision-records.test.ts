import { expect, it } from "vitest";
import { digestJson } from "../base/digest.ts";
import { parseId } from "../base/ids.ts";
import { nameRevision, standsBefore } from "../contract/policy/policy-revision.ts";
import type { Step, Stream } from "../contract/rollout/stream.ts";
import { newRevisions } from "./revision-records.ts";

const family = parseId("router");
const revision = { id: parseId("router-a"), digest: digestJson("test", "a") };
const step: Step = {
  ...{ revision, turn: 0, chosen: 0, reward: null, reason: "policy" },
  candidates: [{ id: "x", selectable: true, reasons: [], probability: 1 }],
};

it("a revision that was logged by two processes has one record", () => {
  const stream: Stream = { level: "step", family, steps: [step, step] };
  const [one] = newRevisions([stream, stream], new Set());
  const known = new Set<string>();
  const again = newRevisions([stream], known);
  expect(again.map(({ digest }) => digest)).toEqual([one!.digest]);
  expect(newRevisions([stream], known)).toEqual([]);
  expect(nameRevision(family, revision).digest).toBe(one!.digest);
});

it("a record that says when the revision was made stands before one that was only logged", () => {
  const [a, b] = [digestJson("test", 1), digestJson("test", 2)].sort() as [typeof revision.digest, never];
  expect(
    standsBefore({ digest: b, record: { producedAtMs: 5 } }, { digest: a, record: { producedAtMs: 0 } }),
  ).toBe(true);
  expect(
    standsBefore({ digest: a, record: { producedAtMs: 0 } }, { digest: b, record: { producedAtMs: 5 } }),
  ).toBe(false);
  expect(
    standsBefore({ digest: a, record: { producedAtMs: 7 } }, { digest: b, record: { producedAtMs: 5 } }),
  ).toBe(true);
});
