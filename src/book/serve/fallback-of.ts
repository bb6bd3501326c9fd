/** Finds the rule by which a router without a policy decided a recorded step.
 *  In: a step, the record of its router if there is one. Out: the rule, or that the record does not state it. The digest
 *  of a router that prefers its candidates in their order follows from the candidates and the exploration, which the
 *  probabilities show. */
import type { Step } from "../../contract/index.ts";
import { digestRouter } from "../../policy/index.ts";
import { listTable } from "../../serve/index.ts";
import type { RecordedRouter } from "./named-router.ts";

export function fallbackOf(
  { reason, policy, revision, candidates }: Step,
  recorded: RecordedRouter | undefined,
): "table" | "order" | "unstated" | "unknown" {
  if (reason === undefined) return "unknown";
  const otherwise = recorded === undefined ? "unstated" : "table";
  if (policy !== undefined) return otherwise;
  const table = listTable(candidates.map(({ id }) => id));
  const digest = digestRouter({ table, floor: 0, exploration: explorationOf(candidates) });
  return digest === revision.digest ? "order" : otherwise;
}

/** Share of uniformly random choices: the least probable candidate has only its part of it. */
function explorationOf(candidates: Step["candidates"]): number {
  const open = candidates.filter(({ selectable }) => selectable);
  const least = open.reduce((found, { probability }) => Math.min(found, probability ?? 0), 1);
  return Number((least * open.length).toPrecision(12)); // without the rounding of the division
}
