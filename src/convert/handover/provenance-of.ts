/** The provenance of a row, named alike in every format: digests of batch, content and envelope, and the ids. Pure. */
import { groupOf, type HandedRollout } from "./handed-rollout.ts";
import type { HandoverBatch } from "./trainer-format.ts";

export interface RowProvenance {
  readonly batch: string | null;
  readonly content: string;
  readonly envelope: string | null;
  readonly rollout_id: string;
  readonly task_id: string;
  readonly group: string;
  readonly stream: number | null;
}

export function provenanceOfRollout(rollout: HandedRollout, batch: HandoverBatch | null): RowProvenance {
  const { content, envelope, record, tokens } = rollout;
  return {
    batch: batch?.digest ?? null,
    content,
    envelope: envelope ?? null,
    rollout_id: record.rolloutId,
    task_id: record.task.id,
    group: groupOf(rollout),
    stream: tokens?.stream ?? null,
  };
}
