/** The table of decisions: one row per step of a step stream, as recorded. `batch export` writes tokens. */
import type { Step } from "../../contract/index.ts";
import { decisionId } from "../../keep/admit/index.ts";
import { nested, real, text, whole } from "./table-column.ts";
import type { BookTable, TabledRollout } from "./tabled-rollout.ts";

interface TabledDecision {
  readonly rollout: TabledRollout;
  readonly stream: number;
  readonly family: string;
  readonly index: number;
  readonly step: Step;
}

export const decisionTable: BookTable<TabledDecision> = {
  columns: [
    text("decision_id", ({ rollout, stream, index }) => decisionId(rollout.content.rolloutId, stream, index)),
    text("rollout_id", ({ rollout }) => rollout.content.rolloutId),
    text("content", ({ rollout }) => rollout.listed.content),
    whole("stream", ({ stream }) => stream),
    whole("step", ({ index }) => index),
    text("family", ({ family }) => family),
    text("revision", ({ step }) => step.revision.id),
    text("revision_digest", ({ step }) => step.revision.digest),
    text("policy", ({ step }) => step.policy?.id),
    text("policy_digest", ({ step }) => step.policy?.digest),
    whole("call", ({ step }) => step.call),
    whole("turn", ({ step }) => step.turn),
    whole("parent", ({ step }) => step.parent),
    text("chosen", ({ step }) => step.candidates[step.chosen]!.id),
    whole("chosen_index", ({ step }) => step.chosen),
    real("probability", ({ step }) => step.candidates[step.chosen]!.probability ?? step.propensity),
    real("reward", ({ step }) => step.reward),
    real("advantage", ({ step }) => step.advantage),
    real("confidence", ({ step }) => step.confidence),
    real("error_before", ({ step }) => step.before),
    real("error_after", ({ step }) => step.after),
    text("reason", ({ step }) => step.reason),
    nested("candidates", ({ step }) => step.candidates),
    nested("seen", ({ step }) => step.seen),
    nested("context", ({ step }) => step.context),
    nested("shadow", ({ step }) => step.shadow),
    nested("monte_carlo", ({ step }) => step.monteCarlo),
    nested("relaxed", ({ step }) => step.relaxed),
  ],
  async *itemsOf(rollout) {
    for (const [stream, { family, ...item }] of rollout.content.streams.entries())
      if (item.level === "step")
        for (const [index, step] of item.steps.entries()) yield { rollout, stream, family, index, step };
  },
};
