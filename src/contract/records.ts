/** Every record kind there is: what `verify` can check, `schema` can print and the catalog can describe. */

import { LedgerPage, LossLedger } from "./batch/ledger.ts";
import { PolicyRevisionLineage } from "./batch/lineage.ts";
import { Manifest } from "./batch/manifest.ts";
import { BatchGroups, BatchProofs, BatchShard, TrainerBatch } from "./batch/trainer-batch.ts";
import type { RecordType } from "./codec/record.ts";
import { BanditIncrement } from "./policy/bandit-increment.ts";
import { FloorPromise } from "./policy/floor-promise.ts";
import { GateVerdict } from "./policy/gate-verdict.ts";
import { PolicyRevision } from "./policy/policy-revision.ts";
import { Assignment } from "./rollout/assignment.ts";
import { Call } from "./rollout/call.ts";
import { Feedback } from "./rollout/feedback.ts";
import { RolloutContent, RolloutEnvelope } from "./rollout/rollout.ts";
import { RolloutEvent } from "./rollout/rollout-event.ts";
import { EnvironmentPackage } from "./task/environment.ts";
import { Task } from "./task/task.ts";
import { Attestation } from "./trust/attestation.ts";
import { Receipt } from "./trust/receipt.ts";
import { Tombstone } from "./trust/tombstone.ts";
import { Release, Verdict } from "./trust/verdict.ts";

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
