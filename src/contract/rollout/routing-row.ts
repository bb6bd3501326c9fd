/** A line of a routing dataset: one decision with its outcome. Rows are exchanged in files and never sealed; `convert/`
 *  reads and writes them. This schema gives their shape for readers in other languages; the reader checks rules between
 *  fields. */
import * as z from "zod";

const terms = z
  .record(z.string(), z.object({ value: z.number(), weight: z.number() }))
  .describe("parts of the reward by name: what was measured, and the weight with which it counts");

const candidate = z
  .looseObject({
    id: z.string().min(1),
    selectable: z.boolean().describe("false: it was excluded before the choice"),
    reasons: z.array(z.string()).describe("why it was excluded").optional(),
    probability: z.number().min(0).max(1).nullish().describe("of the final distribution; null: not logged"),
    features: z.record(z.string(), z.number()).optional(),
    outcome: z
      .object({ reward: z.number(), terms: terms.optional() })
      .describe("what it would have brought: known in simulators and benchmarks")
      .optional(),
  })
  .describe("a model, a tool or a route that could have been chosen");

const state = z.looseObject({
  prompt: z.string().describe("what the user asked").optional(),
  fields: z.record(z.string(), z.union([z.string(), z.number(), z.boolean()])).optional(),
  candidates: z.array(candidate).min(1).describe("any number of them").optional(),
  terms: terms.optional(),
});

export const ROUTING_ROW = {
  kind: "rollbook.routing-row.v1",
  summary: "One decision with its outcome: a line of a routing dataset.",
  schema: z.looseObject({
    schema_version: z.literal(1).optional(),
    decision_id: z
      .string()
      .min(1)
      .describe("joins decision and outcome; default: a digest of the row")
      .optional(),
    session_id: z.string().min(1),
    task_id: z.string().min(1).describe("rows of one task stay in one part of a split"),
    chain_id: z.string().describe("the first decision of its chain; default: this one").optional(),
    agent_role: z.string().describe("the policy family that decided").optional(),
    timestamp: z.union([z.string(), z.number()]).describe("ISO 8601, or seconds since 1970"),
    task_complexity_score: z.number().nullish(),
    primary_failure_count: z.number().nullish(),
    action_fallback: z.union([z.literal(0), z.literal(1)]).optional(),
    primary_model: z.string().min(1).describe("needed where state lists no candidates").nullish(),
    fallback_model: z.string().min(1).nullish(),
    model_chosen: z.string().min(1).describe("the id of the candidate that was chosen"),
    propensity: z.number().gt(0).max(1).nullish().describe("probability of the choice; null: not logged"),
    reward: z.number().nullish().describe("null: unlabelled, which is never 0"),
    terminal: z.boolean().optional(),
    reward_version: z.string().optional(),
    data_source: z.enum(["real", "synthetic", "unknown"]).optional(),
    cost_usd: z
      .number()
      .describe("what the call cost in US dollars; judged as cost where no row has a cost term or prices")
      .nullish(),
    state: state.describe("what the router was shown").optional(),
  }),
} as const;
