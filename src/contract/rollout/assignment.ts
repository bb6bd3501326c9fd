/** An assignment: the work that a worker was asked to run. An artifact that names an assignment must match all its
 *  fields. */
import * as z from "zod";
import { type Digest, digestJson } from "../../base/index.ts";
import { count, defineRecord, digest, id, type RecordOf, refuse, u64 } from "../codec/index.ts";
import { environmentKey } from "../task/index.ts";
import type { RolloutContent } from "./rollout.ts";

export const Assignment = defineRecord({
  kind: "rollbook.assignment.v1",
  summary: "A task to be rolled out: environment, task, seed, number of samples, group.",
  shape: {
    id,
    environment: environmentKey,
    task: z.strictObject({ id, digest: z.optional(digest) }),
    group: z.optional(id),
    samples: count,
    seed: u64,
  },
  references: (assignment) =>
    assignment.task.digest
      ? [{ digest: assignment.task.digest, kind: "rollbook.task.v1", field: "task.digest" }]
      : [],
});
export type Assignment = RecordOf<typeof Assignment>;

/** Seed of one sample: a function of assignment and index, not of worker or attempt, so a retry has the same seed. */
export function sampleSeed(assignment: Digest, sample: number): bigint {
  return BigInt(`0x${digestJson("rollbook.sample-seed.v1", [assignment, sample]).slice(7, 23)}`);
}

/** Fields of a rollout that its assignment determines. */
type Bound = Pick<RolloutContent, "rolloutId" | "assignment" | "environment" | "task" | "group" | "seed">;

export function checkBinding(content: Bound, assignment: Assignment, assignmentDigest: Digest): void {
  const bound = content.assignment;
  const differs = (field: string, expected: unknown, actual: unknown) =>
    refuse(
      "not-bound",
      { field, expected: String(expected), actual: String(actual) },
      `rollout ${content.rolloutId}: ${field} is ${String(actual)}, its assignment says ${String(expected)}. Submit what was assigned.`,
    );
  if (bound?.digest !== assignmentDigest) throw differs("assignment", assignmentDigest, bound?.digest);
  if (bound.sample >= assignment.samples)
    throw differs("sample", `below ${assignment.samples}`, bound.sample);
  if (content.environment !== assignment.environment)
    throw differs("environment", assignment.environment, content.environment);
  if (content.task.id !== assignment.task.id) throw differs("task", assignment.task.id, content.task.id);
  if (content.task.digest !== assignment.task.digest)
    throw differs("task.digest", assignment.task.digest, content.task.digest);
  if (content.group !== assignment.group) throw differs("group", assignment.group, content.group);
  const seed = sampleSeed(assignmentDigest, bound.sample);
  if (content.seed !== seed) throw differs("seed", seed, content.seed);
}
