/** Facts about kinds for the catalog and gc: root kinds, references, and listed fields. A kind that this version does
 *  not know may be a record of a newer version. Its blob is kept, and so is every blob whose digest can be found in
 *  it. */
import { columnTag, type Digest, type DType, given, ITEM_BYTES } from "../../base/index.ts";
import {
  Assignment,
  Attestation,
  BanditIncrement,
  BODY_KIND,
  BookHead,
  digestsIn,
  EnvironmentPackage,
  Feedback,
  FINAL_STATE_KIND,
  FloorPromise,
  FOLDED_HEADS_KIND,
  GateVerdict,
  LoopEnvelope,
  Manifest,
  MEDIA_KIND,
  MESSAGE_KIND,
  NamedRouter,
  PolicyRevision,
  QuarantineRelease,
  Receipt,
  Rollback,
  RolloutContent,
  RolloutEnvelope,
  RolloutEvent,
  recordedReward,
  recordType,
  sampleCount,
  Task,
  Tombstone,
  TrainerBatch,
  taskTitle,
  Verdict,
  WEIGHTS_KIND,
} from "../../contract/index.ts";

/** Records that are kept without a reference. A blob of any other known kind lives only as long as one of them refers
 *  to it. */
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
    QuarantineRelease,
    Receipt,
    Manifest,
    TrainerBatch,
    BanditIncrement,
    FloorPromise,
    GateVerdict,
    Rollback,
    NamedRouter,
    Tombstone,
    BookHead,
    LoopEnvelope,
  ].map((type) => type.kind),
);

/** Kinds without references: their bytes are not searched. */
const LEAVES: ReadonlySet<string> = new Set([
  MESSAGE_KIND,
  MEDIA_KIND,
  BODY_KIND,
  FINAL_STATE_KIND,
  FOLDED_HEADS_KIND,
  WEIGHTS_KIND,
  ...(Object.keys(ITEM_BYTES) as DType[]).map(columnTag),
]);
const CHECKPOINT_PREFIX = "rollbook.checkpoint.";

export function isRecordKind(kind: string): boolean {
  return recordType(kind) !== undefined;
}

/** True for a kind that is neither a record nor a blob of this version: it may be a root of a newer version. */
export function isUnknownKind(kind: string): boolean {
  return !isRecordKind(kind) && !LEAVES.has(kind) && !kind.startsWith(CHECKPOINT_PREFIX);
}

/** True if gc keeps the kind without a reference, with everything it refers to. */
export function isRootKind(kind: string): boolean {
  return ROOTS.has(kind) || isUnknownKind(kind);
}

/** Blobs that records may name without the book holding them. The attestation of the writer that stored such a blob
 *  names it too. A missing blob is then lost, not merely outside the book. */
const HELD: ReadonlySet<string> = new Set([MEDIA_KIND, BODY_KIND, FINAL_STATE_KIND]);

/** True for kinds that are signed when sealed: every root, and blobs that no other record proves to be in the book. */
export function isSignedKind(kind: string): boolean {
  if (kind === Attestation.kind) return false;
  return ROOTS.has(kind) || HELD.has(kind) || kind.startsWith(CHECKPOINT_PREFIX);
}

/** Every digest in a record: a superset of the digests that it needs. */
export function referencesOf(kind: string, bytes: Uint8Array): Digest[] {
  return isRecordKind(kind) ? digestsIn(parse(bytes)) : [];
}

/** Digests that must stay as long as this blob does. None for a tombstone, whose digests are erased. */
export function keptBy(kind: string, bytes: Uint8Array): Digest[] {
  return kind === Tombstone.kind ? [] : referencesOf(kind, bytes);
}

/** Every digest in the JSON of an unknown kind, as 64 hex digits, in values, keys or longer text. Undefined if the
 *  bytes are not JSON: then the blob may refer to anything. */
export function digestsInUnknown(bytes: Uint8Array): Digest[] | undefined {
  try {
    // Serialising again turns an escaped digit into a plain one.
    const text = JSON.stringify(parse(bytes));
    return [...text.matchAll(/(?=([0-9a-f]{64}))/gi)].map(
      ([, hex]) => `sha256:${hex!.toLowerCase()}` as Digest,
    );
  } catch {
    return undefined;
  }
}

/** Fields of a record in the catalog. */
interface RecordFacts {
  id?: string;
  family?: string;
  fields: Record<string, unknown>;
}

/** Catalog row of a record; undefined for blobs that are not records. */
export function describeRecord(kind: string, bytes: Uint8Array): RecordFacts | undefined {
  return isRecordKind(kind) ? factsOf(kind, parse(bytes)) : undefined;
}

/** `describeRecord` and `referencesOf` of a record, parsing it only once. */
export function listRecord(kind: string, bytes: Uint8Array): { facts: RecordFacts; references: Digest[] } {
  const record = parse(bytes);
  return { facts: factsOf(kind, record), references: digestsIn(record) };
}

function factsOf(kind: string, parsed: unknown): RecordFacts {
  const record = parsed as Record<string, unknown>;
  if (kind === RolloutContent.kind) return describeContent(record as unknown as RolloutContent);
  if (kind === Tombstone.kind) return describeTombstone(record as unknown as Tombstone);
  return {
    ...(typeof record.id === "string" ? { id: record.id } : {}),
    ...(typeof record.family === "string" ? { family: record.family } : {}),
    fields: {
      ...briefFields(record),
      ...(kind === Task.kind ? given({ title: taskTitle(record) ?? undefined }) : {}),
    },
  };
}

function briefFields(record: object): Record<string, unknown> {
  const fields: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(record))
    if (name !== "schema" && isBrief(value)) fields[name] = value;
  return fields;
}

function describeContent(content: RolloutContent): RecordFacts {
  const { rolloutId, environment, task, group, dataSource, ending, streams, calls } = content;
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
    models: modelsOf(streams),
    score: recordedReward(content),
  };
  return { id: rolloutId, family: streams[0]!.family, fields };
}

/** Chosen candidates of step streams; without step streams, the revisions that sampled the tokens. */
function modelsOf(streams: RolloutContent["streams"]): string[] {
  const chosen = streams.flatMap((item) =>
    item.level === "step" ? item.steps.map((step) => step.candidates[step.chosen]!.id) : [],
  );
  const sampled = streams.flatMap((item) =>
    item.level === "token" ? item.segments.map(({ revision }) => revision.id as string) : [],
  );
  return [...new Set(chosen.length > 0 ? chosen : sampled)];
}

function describeTombstone({ subjects, records, blobs, reason, by, atMs }: Tombstone): RecordFacts {
  const [rollouts, contents] = [subjects.map((each) => each.rollout), subjects.map((each) => each.content)];
  return { fields: { rollouts, contents, records: records.length, blobs: blobs.length, reason, by, atMs } };
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
