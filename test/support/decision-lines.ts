/** Lines of a routing dataset, written by hand. */
import { modelsOf } from "../../src/convert/routing-jsonl.ts";

export interface DecisionLine {
  readonly task?: string;
  readonly prompt?: string;
  readonly reward?: number;
  readonly costUsd?: number;
  readonly terms?: object;
  readonly timestamp?: string | number;
}

export function decisionLine(
  id: string,
  {
    task = `t-${id}`,
    prompt = "a question",
    reward = 1,
    costUsd,
    terms = {},
    timestamp = "2026-01-01T00:00:00Z",
  }: DecisionLine = {},
): object {
  return {
    schema_version: 1,
    decision_id: id,
    session_id: "s",
    task_id: task,
    agent_role: "router",
    timestamp,
    ...modelsOf(["large", "small"], "large"),
    propensity: 0.5,
    reward,
    terminal: true,
    data_source: "synthetic",
    ...(costUsd === undefined ? {} : { cost_usd: costUsd }),
    state: {
      prompt,
      fields: {},
      terms,
      candidates: ["large", "small"].map((model) => ({
        ...{ id: model, features: {}, selectable: true, reasons: [], probability: 0.5 },
      })),
    },
  };
}
