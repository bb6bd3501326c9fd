import { describe, expect, test } from "vitest";
import { d } from "../../../test/support/examples.ts";
import { refusalOf } from "../../../test/support/refusal-of.ts";
import { makeRollout } from "../../../test/support/shelf.ts";
import { parseId } from "../../base/ids.ts";
import { seal } from "../codec/record.ts";
import type { EnvironmentKey } from "../task/environment.ts";
import { Assignment, checkBinding, sampleSeed } from "./assignment.ts";
import { rolloutIdFor } from "./rollout.ts";

const assignment = seal(Assignment, {
  id: parseId("assignment-1"),
  environment: "env.weather@1" as EnvironmentKey,
  task: { id: parseId("task-paris") },
  group: parseId("group-1"),
  samples: 2,
  seed: 7n,
});

function contentFor(sample: number, over: Record<string, unknown> = {}) {
  const seed = sampleSeed(assignment.digest, sample).toString();
  const bound = { digest: assignment.digest, sample };
  return makeRollout(rolloutIdFor(assignment.digest, sample), { assignment: bound, seed, ...over }).content
    .record;
}
const check = (content: ReturnType<typeof contentFor>) =>
  checkBinding(content, assignment.record, assignment.digest);

describe("binding", () => {
  test("a rollout that does what was assigned is bound", () => {
    for (const sample of [0, 1]) check(contentFor(sample));
  });

  test.each([
    ["assignment", { assignment: { digest: d("other"), sample: 0 } }],
    ["assignment", { assignment: undefined }],
    ["sample", { assignment: { digest: assignment.digest, sample: 2 } }],
    ["environment", { environment: "env.weather@2" }],
    ["task", { task: { id: "task-berlin" } }],
    ["task.digest", { task: { id: "task-paris", digest: d("task") } }],
    ["group", { group: "group-2" }],
    ["group", { group: undefined }],
    ["seed", { seed: "1" }],
  ])("another %s is refused", (field, over) => {
    expect(refusalOf(() => check(contentFor(0, over)))).toMatchObject({
      code: "not-bound",
      fields: { field },
    });
  });

  test("seed and rollout id follow from assignment and sample alone, and differ between samples", () => {
    expect(sampleSeed(assignment.digest, 0)).toBe(sampleSeed(assignment.digest, 0));
    const seeds = Array.from({ length: 100 }, (_, i) => sampleSeed(assignment.digest, i));
    expect(new Set(seeds).size).toBe(100);
    expect(seeds.every((seed) => seed >= 0n && seed < 2n ** 64n)).toBe(true);
    expect(seeds.some((seed) => seed > 2n ** 53n)).toBe(true);
    expect(rolloutIdFor(assignment.digest, 0)).not.toBe(rolloutIdFor(assignment.digest, 1));
  });
});
