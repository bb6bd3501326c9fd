/** The table of rollouts: one row per rollout, with the fields of `artifact ls` and of its last run. */
import { nested, real, text, time, whole } from "./table-column.ts";
import type { BookTable, TabledRollout } from "./tabled-rollout.ts";

export const rolloutTable: BookTable<TabledRollout> = {
  columns: [
    text("rollout_id", ({ content }) => content.rolloutId),
    text("content", ({ listed }) => listed.content),
    nested("envelopes", ({ listed }) => listed.envelopes),
    time("started_at", ({ envelope }) => envelope.startedAtMs),
    time("ended_at", ({ envelope }) => envelope.endedAtMs),
    text("experiment", ({ envelope }) => envelope.experiment),
    text("worker", ({ envelope }) => envelope.worker),
    whole("attempt", ({ envelope }) => envelope.attempt),
    text("environment", ({ content }) => content.environment),
    text("task", ({ content }) => content.task.id),
    text("task_digest", ({ content }) => content.task.digest),
    text("task_title", ({ listed }) => listed.taskTitle),
    // `group` is a keyword of SQL.
    text("group_id", ({ content }) => content.group),
    text("data_source", ({ content }) => content.dataSource),
    // Text, because a seed can be 2^64 − 1, which no signed column can hold.
    text("seed", ({ content }) => content.seed.toString()),
    nested("sampling", ({ content }) => content.sampling),
    text("ending", ({ listed }) => listed.ending),
    nested("ending_detail", ({ content }) => content.ending),
    nested("families", ({ listed }) => listed.families),
    nested("levels", ({ listed }) => listed.levels),
    nested("models", ({ listed }) => listed.models),
    whole("samples", ({ listed }) => listed.samples),
    whole("calls", ({ content }) => content.calls.length),
    real("score", ({ listed }) => listed.score),
    nested("scores", ({ content }) => content.scores),
    nested("feedback", ({ listed }) => listed.feedback),
    text("final_state", ({ content }) => content.finalState),
  ],
  async *itemsOf(rollout) {
    yield rollout;
  },
};
