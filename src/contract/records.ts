/** Every record kind there is: what `verify` can check, `schema` can print and the catalog can describe. */
import { Assignment } from "./assignment.ts";
import { Attestation } from "./attestation.ts";
import { BanditIncrement } from "./bandit-increment.ts";
import { Call } from "./call.ts";
import { EnvironmentPackage } from "./environment.ts";
import { Feedback } from "./feedback.ts";
import { FloorPromise } from "./floor-promise.ts";
import { GateVerdict } from "./gate-verdict.ts";
import { LedgerPage, LossLedger } from "./ledger.ts";
import { PolicyRevisionLineage } from "./lineage.ts";
import { Manifest } from "./manifest.ts";
import { PolicyRevision } from "./policy-revision.ts";
import { Receipt } from "./receipt.ts";
import type { RecordType } from "./record.ts";
import { RolloutContent, RolloutEnvelope } from "./rollout.ts";
import { RolloutEvent } from "./rollout-event.ts";
import { Task } from "./task.ts";
import { Tombstone } from "./tombstone.ts";
import { BatchGroups, BatchProofs, BatchShard, TrainerBatch } from "./trainer-batch.ts";
import { Release, Verdict } from "./verdict.ts";

export const RECORD_TYPES: readonly RecordType[] = [
  PolicyRevision,
  EnvironmentPackage,
  Task,
  Assignment,
  Call,
  RolloutContent,
  RolloutEnvelope,
  RolloutEvent,
  Attestation,
  Feedback,
  Verdict,
  Release,
  Receipt,
  Manifest,
  PolicyRevisionLineage,
  TrainerBatch,
  BatchShard,
  BatchGroups,
  BatchProofs,
  LossLedger,
  LedgerPage,
  BanditIncrement,
  FloorPromise,
  GateVerdict,
  Tombstone,
] as unknown as readonly RecordType[];

const byKind = new Map(RECORD_TYPES.map((type) => [type.kind, type]));

export function recordType(kind: string): RecordType | undefined {
  return byKind.get(kind);
}
