/** All record kinds: `verify` checks them, `schema` prints them, and the catalog describes them. */

import {
  BatchGroups,
  BatchProofs,
  BatchShard,
  LedgerPage,
  LossLedger,
  Manifest,
  PolicyRevisionLineage,
  TrainerBatch,
} from "./batch/index.ts";
import type { RecordType } from "./codec/index.ts";
import { LoopEnvelope, LoopMembers, LoopTransition, RunPack } from "./loop/index.ts";
import {
  BanditIncrement,
  FloorPromise,
  GateVerdict,
  NamedRouter,
  PolicyRevision,
  Rollback,
} from "./policy/index.ts";
import {
  Assignment,
  Call,
  Feedback,
  RolloutContent,
  RolloutEnvelope,
  RolloutEvent,
} from "./rollout/index.ts";
import { EnvironmentPackage, Task } from "./task/index.ts";
import { Attestation, BookHead, QuarantineRelease, Receipt, Tombstone, Verdict } from "./trust/index.ts";

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
  QuarantineRelease,
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
  Rollback,
  NamedRouter,
  Tombstone,
  BookHead,
  LoopTransition,
  LoopMembers,
  LoopEnvelope,
  RunPack,
] as unknown as readonly RecordType[];

const byKind = new Map(RECORD_TYPES.map((type) => [type.kind, type]));

export function recordType(kind: string): RecordType | undefined {
  return byKind.get(kind);
}
