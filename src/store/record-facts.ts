/** What the book's index and its garbage collector must know of records: their names, and what keeps what alive. */
import type { Digest } from "../base/digest.ts";
import { Assignment } from "../contract/assignment.ts";
import { Attestation } from "../contract/attestation.ts";
import { BanditIncrement } from "../contract/bandit-increment.ts";
import { MESSAGE_KIND } from "../contract/call.ts";
import { EnvironmentPackage } from "../contract/environment.ts";
import { Feedback } from "../contract/feedback.ts";
import { digestsIn } from "../contract/fields.ts";
import { FloorPromise } from "../contract/floor-promise.ts";
import { GateVerdict } from "../contract/gate-verdict.ts";
import { Manifest } from "../contract/manifest.ts";
import { PolicyRevision } from "../contract/policy-revision.ts";
import { Receipt } from "../contract/receipt.ts";
import { recordType } from "../contract/records.ts";
import { RolloutContent, RolloutEnvelope } from "../contract/rollout.ts";
import { RolloutEvent } from "../contract/rollout-event.ts";
import { sampleCount } from "../contract/stream.ts";
import { Task } from "../contract/task.ts";
import { TrainerBatch } from "../contract/trainer-batch.ts";
import { Release, Verdict } from "../contract/verdict.ts";
import type { KindGuide } from "./kind-guide.ts";

/** Records that stand by themselves. Everything else lives only as long as one of them refers to it. */
const ROOTS: ReadonlySet<string> = new Set(
  [
    PolicyRevision,
    EnvironmentPackage,
    Task,
    Assignment,
    RolloutEnvelope,
    RolloutEvent,
    Attestation,
    Feedback,
    Verdict,
    Release,
    Receipt,
    Manifest,
    TrainerBatch,
    BanditIncrement,
    FloorPromise,
    GateVerdict,
  ].map((type) => type.kind),
);

export function isRootKind(kind: string): boolean {
  return ROOTS.has(kind);
}

/** Every digest a blob mentions: more than it strictly needs, never less. */
export function referencesOf(kind: string, bytes: Uint8Array): Digest[] {
  return recordType(kind) === undefined || kind === MESSAGE_KIND ? [] : digestsIn(parse(bytes));
}

/** How the catalog and gc read the records of this package. */
export const RECORD_GUIDE: KindGuide = {
  isRecord: (kind) => recordType(kind) !== undefined,
  isRoot: isRootKind,
  references: referencesOf,
  describe: describeRecord,
};

export interface RecordFacts {
  id?: string;
  family?: string;
  fields: Record<string, unknown>;
}

/** The row of a record in the catalog; undefined for blobs that are not records. */
export function describeRecord(kind: string, bytes: Uint8Array): RecordFacts | undefined {
  if (recordType(kind) === undefined) return undefined;
  const record = parse(bytes) as Record<string, unknown>;
  if (kind === RolloutContent.kind) return describeContent(record as unknown as RolloutContent);
  const fields: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(record))
    if (name !== "schema" && isBrief(value)) fields[name] = value;
  return {
    ...(typeof record.id === "string" ? { id: record.id } : {}),
    ...(typeof record.family === "string" ? { family: record.family } : {}),
    fields,
  };
}

function describeContent(content: RolloutContent): RecordFacts {
  const { rolloutId, environment, task, group, dataSource, ending, streams, calls, scores } = content;
  // Scores of weight 0 are kept, and count for nobody: with no other a rollout is unlabelled, not worth 0.
  const counted = scores.filter(({ weight }) => weight !== 0);
  const fields = {
    environment,
    task: task.id,
    group: group ?? null,
    dataSource,
    ending: ending.kind === "failed" ? `failed-${ending.owner}` : ending.kind,
    families: [...new Set(streams.map((item) => item.family))].sort(),
    levels: [...new Set(streams.map((item) => item.level))].sort(),
    samples: streams.reduce((sum, item) => sum + sampleCount(item), 0),
    calls: calls.length,
    score: counted.length === 0 ? null : counted.reduce((sum, each) => sum + each.value * each.weight, 0),
  };
  return { id: rolloutId, family: streams[0]!.family, fields };
}

function isBrief(value: unknown): boolean {
  return (
    typeof value === "number" ||
    typeof value === "boolean" ||
    (typeof value === "string" && value.length <= 256)
  );
}

function parse(bytes: Uint8Array): unknown {
  return JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString());
}
